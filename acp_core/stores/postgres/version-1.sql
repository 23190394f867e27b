-- The first version of what acp keeps in a PostgreSQL database.
--
-- What comes from folders (lines, names, contents) is bytea: nothing is decoded or encoded again.
-- What hosts say and ask is json, not jsonb: jsonb refuses texts that JSON allows.

create schema acp;

create table acp.version (
    version integer primary key,
    at timestamptz not null default clock_timestamp(),
    who name not null default session_user
);

-- A collaboration as it stands now. Who publishes locks its row, and changes it last.
create table acp.collab (
    id bigint generated always as identity primary key,
    name text not null unique check (name ~ '^[a-z0-9][a-z0-9-]{0,63}$'),
    revision bigint not null,       -- grows by one with every change
    mark bytea not null check (octet_length(mark) = 16), -- made up for every change: names it for good
    seq bigint not null,            -- of the last event
    lines bigint not null,          -- of the log
    size bigint not null,           -- of the log in bytes
    sha256 bytea not null check (octet_length(sha256) = 32), -- of the whole log
    protocol bytea not null,        -- protocol.json
    phase text not null,
    waiting text[] not null,
    updated timestamptz not null default clock_timestamp()
) with (fillfactor = 70);

-- Every change, with what the log was after it: whoever has seen one can tell whether it is still there.
create table acp.revision (
    collab bigint not null references acp.collab,
    number bigint not null,
    mark bytea not null,
    seq bigint not null,
    lines bigint not null,
    size bigint not null,
    sha256 bytea not null,
    at timestamptz not null default clock_timestamp(),
    who name not null default session_user,
    about json not null,            -- account, host and words of who made it
    primary key (collab, number)
);
create unique index revision_mark on acp.revision (collab, mark);

create table acp.event (
    collab bigint not null references acp.collab,
    line_number bigint not null check (line_number > 0),
    key bytea,                      -- a digest of sender and key; null where the event has no key
    line bytea not null,            -- with its newline
    primary key (collab, line_number)
);
create unique index event_key on acp.event (collab, key);

-- Contents of documents. The check keeps anybody from storing something under another's digest.
create table acp.blob (
    digest bytea primary key,
    data bytea not null,
    check (digest = sha256(data)),
    check (octet_length(data) <= 16777216)
);

create table acp.doc (
    collab bigint not null references acp.collab,
    revision bigint not null,
    path bytea not null,
    digest bytea references acp.blob, -- null: deleted
    foreign key (collab, revision) references acp.revision
);
create unique index doc_path on acp.doc (collab, revision, sha256(path));

create table acp.lease (
    collab bigint not null references acp.collab,
    participant text not null,
    host text not null,
    boot text not null,
    account text not null,
    epoch bigint not null,
    since text not null,
    by text not null,
    primary key (collab, participant)
);

create table acp.host (
    collab bigint not null references acp.collab,
    name text not null check (name ~ '^[a-z0-9][a-z0-9-]{0,63}$'),
    state json not null check (octet_length(state::text) <= 65536),
    beat timestamptz not null default clock_timestamp(),
    primary key (collab, name)
);

create table acp.ask (
    collab bigint not null references acp.collab,
    id text not null check (id ~ '^[0-9a-f]{24}$'),
    host text not null check (host ~ '^[a-z0-9][a-z0-9-]{0,63}$'),
    request json not null check (octet_length(request::text) <= 65536),
    at timestamptz not null default clock_timestamp(),
    who name not null default session_user, -- nobody but the server writes it: see rights.sql
    answer json check (octet_length(answer::text) <= 65536),
    primary key (collab, id)
);
create index ask_host on acp.ask (collab, host, at);

-- Whoever may change a collaboration's row may move it on, never back.
create function acp.refuse_to_go_back() returns trigger language plpgsql as $$
begin
    raise exception using errcode = 'check_violation',
        message = 'a collaboration moves on by one change at a time, and never back';
end $$;
create trigger forward before update on acp.collab for each row
    when (new.revision <> old.revision + 1 or new.size < old.size or new.lines < old.lines
          or new.name <> old.name)
    execute function acp.refuse_to_go_back();
