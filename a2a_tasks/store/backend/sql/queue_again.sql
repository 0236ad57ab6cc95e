update a2a_tasks_run r set status = 'queued', token = '', lease_until = null, due_at = clock_timestamp(),
  said = 0, parked_in = '', error = d.error,
  deaths = d.deaths, shared_deaths = d.shared_deaths, died_at_event = d.died_at_event, furthest = d.max_events,
  longest_life = d.longest_life, request = d.request, past = {past}
from unnest(%(pk)s::bigint[], %(error)b::text[], %(deaths)s::int[], %(shared_deaths)s::int[], %(died_at_event)s::int[],
  %(max_events)s::int[], %(longest_life)s::float8[], %(request)b::text[])
  as d(id, error, deaths, shared_deaths, died_at_event, max_events, longest_life, request)
where r.id = d.id returning r.id
