-- held: its author did not retract it. Without this column, a search would look up a retraction for each row that the
-- asker may see.
alter table memd.rec add column held boolean not null default true;
update memd.rec r set held = false
where exists (select from memd.inv i where i.pool = r.pool and i.part = r.part and i.n = r.n and i.by_part = r.part);

-- What an author retracts of their own lines, and believes again when they forget the retraction.
create function memd.retract() returns trigger language plpgsql security definer set search_path = '' as $$
declare
    line constant memd.inv := coalesce(new, old);
begin
    update memd.rec r set held = not exists (
        select from memd.inv i
        where i.pool = line.pool and i.part = line.part and i.n = line.n and i.by_part = line.part)
    where r.pool = line.pool and r.part = line.part and r.n = line.n;
    return null;
end $$;
revoke execute on function memd.retract() from public;
create trigger own_retraction after insert on memd.inv
    for each row when (new.by_part = new.part) execute function memd.retract();
create trigger own_retraction_forgotten after delete on memd.inv
    for each row when (old.by_part = old.part) execute function memd.retract();

-- The lines of a partition that their author retracted; a retraction may stand before its line.
create function memd.retracted(in_pool int, in_part text) returns int[]
language sql stable security definer set search_path = '' as $$
    select coalesce(array_agg(i.n), '{}') from memd.inv i
    where i.pool = in_pool and i.part = in_part and i.by_part = in_part and i.pool = any(memd.pools())
$$;
revoke execute on function memd.retracted(int, text) from public;
grant execute on function memd.retracted(int, text) to memd_writer;

-- Words of any language as they are, without the stop words of English: nearly every line has one, and to rank all these
-- lines took most of the time of a search.
create text search dictionary memd.without_stop_words (template = pg_catalog.simple, stopwords = english);
create text search configuration memd.any_language (copy = pg_catalog.simple);
alter text search configuration memd.any_language alter mapping replace simple with memd.without_stop_words;

-- PostgreSQL does not read this index behind a policy. A function with the owner's rights could read it, but the time
-- that the function takes would tell the asker how often other pools have a word.
drop index memd.rec_words_idx;

-- Where no partition is withheld, the list is null, and PostgreSQL compares no row with it.
alter policy readable on memd.rec
    using (pool = any((select memd.pools())::int[]) and (part <> all ((select nullif(memd.withheld(), '{}'))::text[])) is not false);
