-- What members of acp_writer and acp_reader may do. Applied at each `acp store init`.
--
-- Writers add to the history and never change it. Where a column names who did something, writers
-- may not write that column: the server fills it in.

grant usage on schema acp to acp_reader, acp_writer;
grant select on all tables in schema acp to acp_reader, acp_writer;

grant insert on acp.collab, acp.event, acp.blob, acp.doc to acp_writer;
grant update (revision, mark, seq, lines, size, sha256, protocol, phase, waiting, updated,
            standing)
    on acp.collab to acp_writer;
grant insert (collab, number, mark, seq, lines, size, sha256, about) on acp.revision to acp_writer;
grant insert, update, delete on acp.lease to acp_writer;
grant insert (collab, name, state), update (state, beat) on acp.host to acp_writer;
grant insert (collab, id, host, request), update (answer) on acp.ask to acp_writer;
