-- What lists of many collaborations tell beside phase and waiting: who is a person, what each waited
-- for must do and since when, by whom it is blocked. The host that publishes says it, like the phase.
-- Null where an earlier acp published last: then whoever lists reads the log.

alter table acp.collab add column standing json
    check (octet_length(standing::text) <= 65536);
