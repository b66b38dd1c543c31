-- Passes that a revocation ended: a pass issued before `at` opens a pool no more, also after a new grant. `pool` 0: every
-- pool, once the subject has no grant left. Deleting a grant writes the rows, whoever deletes it.
create table memd.ended (
    subject text not null,
    pool int not null,
    at timestamptz not null,
    primary key (subject, pool)
);

create function memd.end_passes() returns trigger
language plpgsql security definer set search_path = '' as $$
declare
    ended_at constant timestamptz := clock_timestamp();
begin
    insert into memd.ended (subject, pool, at)
    select o.subject, o.pool, ended_at from old_grants o
    union
    select o.subject, 0, ended_at from old_grants o
    where not exists (select from memd.grants g where g.subject = o.subject)
    on conflict (subject, pool) do update set at = excluded.at;
    return null;
end $$;
revoke execute on function memd.end_passes() from public;
create trigger end_passes after delete on memd.grants
    referencing old table as old_grants for each statement execute function memd.end_passes();

-- `memd.issued`: when the asker's pass was issued, in seconds of UTC; a pass that does not say it is older than any.
create or replace function memd.granted() returns table (pool int, until timestamptz)
language sql stable security definer set search_path = '' as $$
    select g.pool, g.expires from memd.grants g
    where g.subject = current_setting('memd.subject', true) and g.expires > now()
    and not exists (
        select from memd.ended e where e.subject = g.subject and e.pool in (0, g.pool)
        and e.at > to_timestamp(coalesce(nullif(current_setting('memd.issued', true), ''), '0')::float8)
    )
$$;

-- The revoked partitions of one of the asker's pools.
create function memd.withheld_in(in_pool int) returns setof text
language sql stable security definer set search_path = '' as $$
    select h.part from memd.head h join memd.revoked r using (part)
    where h.pool = in_pool and in_pool = any(memd.pools()) order by h.part
$$;
revoke execute on function memd.withheld_in(int) from public;
grant execute on function memd.withheld_in(int) to memd_reader;
grant select on memd.ended to memd_identity;
