-- The hub's tables. The lines of partitions (op) and their heads are the truth; rec and inv are made from op.
-- Roles: memd_reader and memd_writer are what the gateway becomes in each transaction; memd_identity is the identity
-- layer, the only one that grants and revokes. memd_gateway may log in and has no right of its own.

create table memd.hub (id text primary key);

create table memd.pool (
    id int generated always as identity primary key,
    name text not null unique check (name ~ '^[a-z0-9][a-z0-9._/-]{0,119}$')
);

-- Who may read and write which pool, and until when.
create table memd.grants (
    subject text not null,
    pool int not null references memd.pool on delete cascade,
    expires timestamptz not null,
    primary key (subject, pool)
);

-- Partitions that nobody sees: one row hides all that an author said, in every pool, and what the author retracted is
-- believed again.
create table memd.revoked (
    part text collate "C" primary key,
    why text not null default '',
    at timestamptz not null default now()
);

create table memd.head (
    pool int not null references memd.pool on delete cascade,
    part text collate "C" not null,
    subject text not null,
    name text not null,
    epoch int not null,
    count int not null,
    head bytea not null,
    hashes bytea not null,
    primary key (pool, part)
);

create table memd.op (
    pool int not null,
    part text collate "C" not null,
    n int not null,
    line bytea not null,
    primary key (pool, part, n)
) partition by hash (pool);

create table memd.rec (
    pool int not null,
    part text collate "C" not null,
    n int not null,
    text text not null,
    type text not null,
    key text not null,
    said text not null,
    words tsvector not null,
    model text not null default '',
    vec halfvec(384),
    primary key (pool, part, n)
) partition by hash (pool);

-- Retractions: the line `by_n` of partition `by_part` says that the line `n` of `part` does not hold.
create table memd.inv (
    pool int not null,
    by_part text collate "C" not null,
    by_n int not null,
    part text collate "C" not null,
    n int not null,
    primary key (pool, by_part, by_n)
);
create index on memd.inv (pool, part, n);

do $$
begin
    for number in 0..15 loop
        execute format('create table memd.op_%s partition of memd.op for values with (modulus 16, remainder %s)', number, number);
        execute format('create table memd.rec_%s partition of memd.rec for values with (modulus 16, remainder %s)', number, number);
    end loop;
end $$;
create index on memd.rec using gin (words);

-- Embeddings are random to a compressor, and reading them from a table of their own costs a second look-up a row.
alter table memd.rec alter column vec set storage main;

-- What the asker may use, and until when. Security definer, because the identity layer alone reads memd.grants.
create function memd.granted() returns table (pool int, until timestamptz)
language sql stable security definer set search_path = '' as $$
    select g.pool, g.expires from memd.grants g
    where g.subject = current_setting('memd.subject', true) and g.expires > now()
$$;
create function memd.pools() returns int[] language sql stable security definer set search_path = '' as $$
    select coalesce(array_agg(g.pool order by g.pool), '{}') from memd.granted() g
$$;

-- The revoked partitions of the asker's pools: few, however many are revoked in all.
create function memd.withheld() returns text[] language sql stable security definer set search_path = '' as $$
    select coalesce(array_agg(distinct r.part), '{}')
    from memd.head h join memd.revoked r using (part) where h.pool = any(memd.pools())
$$;

-- Replace lines by what their author left of them. Nothing else changes a line.
create function memd.redact(in_pool int, in_part text, numbers int[], lines bytea[]) returns void
language plpgsql security definer set search_path = '' as $$
begin
    if not in_pool = any(memd.pools()) then
        raise exception 'the pool is not granted' using errcode = 'insufficient_privilege';
    end if;
    if exists (select from unnest(lines) as l(line) where substring(line for 9) <> '{"gone":"'::bytea) then
        raise exception 'a line is only replaced by a gone line' using errcode = 'insufficient_privilege';
    end if;
    update memd.op o set line = g.line
    from unnest(numbers, lines) as g(n, line) where o.pool = in_pool and o.part = in_part and o.n = g.n;
    delete from memd.rec r where r.pool = in_pool and r.part = in_part and r.n = any(numbers);
    delete from memd.inv i where i.pool = in_pool and i.by_part = in_part and i.by_n = any(numbers);
end $$;
revoke execute on function memd.granted(), memd.pools(), memd.withheld(), memd.redact(int, text, int[], bytea[]) from public;

alter table memd.pool enable row level security;
alter table memd.head enable row level security;
alter table memd.op enable row level security;
alter table memd.rec enable row level security;
alter table memd.inv enable row level security;

create policy granted on memd.pool for select to memd_reader, memd_writer
    using (id = any((select memd.pools())::int[]));
create policy identity on memd.pool to memd_identity using (true) with check (true);
create policy identity on memd.head for select to memd_identity using (true);

-- Both arrays are made once for a query, not for a row.
create policy readable on memd.head for select to memd_reader
    using (pool = any((select memd.pools())::int[]) and part <> all ((select memd.withheld())::text[]));
create policy readable on memd.op for select to memd_reader
    using (pool = any((select memd.pools())::int[]) and part <> all ((select memd.withheld())::text[]));
create policy readable on memd.rec for select to memd_reader
    using (pool = any((select memd.pools())::int[]) and part <> all ((select memd.withheld())::text[]));
create policy readable on memd.inv for select to memd_reader
    using (pool = any((select memd.pools())::int[]) and by_part <> all ((select memd.withheld())::text[]));

create policy writable on memd.head to memd_writer
    using (pool = any((select memd.pools())::int[])) with check (pool = any((select memd.pools())::int[]));
create policy writable on memd.op to memd_writer
    using (pool = any((select memd.pools())::int[])) with check (pool = any((select memd.pools())::int[]));
create policy writable on memd.rec to memd_writer
    using (pool = any((select memd.pools())::int[])) with check (pool = any((select memd.pools())::int[]));
create policy writable on memd.inv to memd_writer
    using (pool = any((select memd.pools())::int[])) with check (pool = any((select memd.pools())::int[]));

grant usage on schema memd to memd_reader, memd_writer, memd_identity;
grant execute on function memd.granted(), memd.pools(), memd.withheld() to memd_reader, memd_writer;
grant execute on function memd.redact(int, text, int[], bytea[]) to memd_writer;
grant select on memd.hub, memd.revoked to memd_reader, memd_writer, memd_identity;
grant select on memd.pool, memd.head, memd.op, memd.rec, memd.inv to memd_reader;
grant select on memd.pool, memd.op to memd_writer;
grant select, insert, update on memd.head to memd_writer;
grant insert on memd.op, memd.rec, memd.inv to memd_writer;
grant select, insert, update, delete on memd.pool, memd.grants, memd.revoked to memd_identity;
grant select on memd.head to memd_identity;

insert into memd.hub values (encode(sha256(convert_to(gen_random_uuid()::text, 'UTF8')), 'hex'));
