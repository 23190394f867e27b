"""A store that is a PostgreSQL database, for many collaborations and quick news (extra ``postgres``).

`engine` is what `acp_core.stores.engine.Engine` asks for; `link` the one connection that a process
has; `publishing`, `reading` and `hosts` what is said over it; `schema` prepares a database;
`overview` lists its collaborations; `health` looks at how safely it keeps them.
"""
