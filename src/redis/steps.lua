-- What zklock keeps in Redis, and each step on it. A script runs alone, so a step is done completely or not at all.
--
-- <prefix>state           number: the last number given; run: the run of the server that has the claims; until quiet
--                         nobody comes to hold; longest: the longest lease
-- <prefix>sessions        sessions by the time at which they end, in milliseconds of the server's clock
-- <prefix>claims:SESSION  the ids of its claims; <prefix>wanted:SESSION those that somebody wants to end
-- <prefix>news:SESSION    counts what its client is told: a claim came to hold, or somebody wants one to end
-- <prefix>queue:LOCK      the ids of a lock's claims by their numbers
-- <prefix>claim:ID        a claim
-- <prefix>limit:LOCK      how many permits a semaphore has, by set_limit; <prefix>given:LOCK by a claim, while it is used
local step, P, LEASE, RUN = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]
-- Tries what the steps do; gives the commands and keys that this user may not use.
local function check()
  local key, denied = P .. 'check', {}
  for _, call in ipairs({
    { 'TIME' }, { 'INFO', 'server' }, { 'SET', key, '0' }, { 'GET', key }, { 'INCR', key }, { 'EXISTS', key }, { 'DEL', key },
    { 'HSET', key, 'a', '0' }, { 'HGET', key, 'a' }, { 'HMGET', key, 'a' }, { 'DEL', key },
    { 'ZADD', key, '0', 'a' }, { 'ZSCORE', key, 'a' }, { 'ZCOUNT', key, '0', '0' }, { 'ZRANGE', key, '0', '0' },
    { 'ZRANGEBYSCORE', key, '0', '0' }, { 'ZREVRANGEBYSCORE', key, '0', '0' }, { 'ZREM', key, 'a' },
    { 'SADD', key, 'a' }, { 'SCARD', key }, { 'SMEMBERS', key }, { 'SREM', key, 'a' }, { 'DEL', key },
    { 'PUBLISH', P .. 'check', '' },
  }) do
    local answer = redis.pcall(unpack(call))
    local why = type(answer) == 'table' and answer.err
    if why and string.find(why, 'user executing the script', 1, true) then
      denied[#denied + 1] = table.concat(call, ' ', 1, math.min(#call, 2))
    elseif why and #denied == 0 then
      return redis.error_reply(why)
    end
  end
  return denied
end

-- Before anything else of a client's first connection.
if step == 'hello' and ARGV[5] == '' then
  local info = redis.pcall('INFO', 'server')
  if type(info) == 'string' and string.find(info, 'redis_mode:cluster', 1, true) then return { 'cluster' } end
  local denied = check()
  if denied.err then return denied end
  if #denied > 0 then return { 'denied', unpack(denied) } end
end

local time = redis.call('TIME')
local micros = tonumber(time[1]) * 1000000 + tonumber(time[2])
local now = math.floor(micros / 1000)
local kept = redis.call('HMGET', P .. 'state', 'number', 'run', 'quiet', 'longest')
local last, quiet = tonumber(kept[1] or '0'), tonumber(kept[3] or '0')
local longest = math.max(LEASE, tonumber(kept[4] or '0'))

local function text(number) return string.format('%.0f', number) end

local function keep_longest(lease)
  if tonumber(kept[4] or '0') < lease then redis.call('HSET', P .. 'state', 'longest', text(lease)) end
end

local function keep_quiet(till)
  quiet = till
  redis.call('HSET', P .. 'state', 'run', RUN, 'quiet', text(till))
end

-- Whether a claim can come to hold. A server that was restarted, or promoted, may have lost the last writes: a holder
-- by one of them has lost its lock by its own clock after a lease.
local function is_settled()
  if kept[2] ~= RUN then
    kept[2] = RUN
    keep_quiet(now + longest)
  elseif quiet > now + longest then
    -- The clock was set back.
    keep_quiet(now + longest)
  end
  return now >= quiet
end

local function publish(session, count, lock)
  local client = string.match(session, '^[^:]*')
  redis.call('PUBLISH', P .. 'client:' .. client, session .. ' ' .. count .. ' ' .. lock)
end

-- Tells a session's client to look at a lock, or at what others want.
local function tell(session, lock) publish(session, redis.call('INCR', P .. 'news:' .. session), lock) end

local function drop(id)
  local claim = redis.call('HMGET', P .. 'claim:' .. id, 'lock', 'session', 'kind')
  local lock, session = claim[1], claim[2]
  if not lock then return nil end
  redis.call('ZREM', P .. 'queue:' .. lock, id)
  redis.call('SREM', P .. 'claims:' .. session, id)
  redis.call('SREM', P .. 'wanted:' .. session, id)
  redis.call('DEL', P .. 'claim:' .. id)
  if claim[3] == '3' and redis.call('EXISTS', P .. 'queue:' .. lock) == 0 then
    redis.call('DEL', P .. 'given:' .. lock)
  end
  return lock
end

local function limit_of(lock)
  return redis.call('GET', P .. 'limit:' .. lock) or redis.call('GET', P .. 'given:' .. lock)
end

-- The numbers of a lock's holders, and of the first claim that waits. Reads no more than that. Claims that come to hold
-- by this are told, but for `own`, whose client gets an answer.
local function front(lock, own)
  local left, settled, holding, first, at = nil, nil, {}, nil, 0
  while true do
    local ids = redis.call('ZRANGE', P .. 'queue:' .. lock, at, at + 31, 'WITHSCORES')
    if #ids == 0 then return holding, nil end
    for i = 1, #ids, 2 do
      local key = P .. 'claim:' .. ids[i]
      local claim = redis.call('HMGET', key, 'kind', 'permits', 'held', 'session')
      local kind, permits, session = claim[1], tonumber(claim[2]), claim[4]
      if not kind then
        -- An operator has deleted it.
        redis.call('ZREM', P .. 'queue:' .. lock, ids[i])
        return front(lock, own)
      end
      if ids[i] ~= own and not redis.call('ZSCORE', P .. 'sessions', session) then
        -- An operator has deleted its session. Its client may believe in it for as long as its lease.
        redis.call('ZADD', P .. 'sessions', text(now + longest), session)
      end
      if kind == '3' then left = left or tonumber(limit_of(lock) or '0') end
      local holds = kind ~= '3' or permits <= left
      if first then holds = holds and kind == first and (kind == '2' or kind == '3') end
      first = first or kind
      if holds and not claim[3] then
        if settled == nil then settled = is_settled() end
        holds = settled
        if holds then
          redis.call('HSET', key, 'held', '1')
          if ids[i] ~= own then tell(session, lock) end
        end
      end
      if not holds then return holding, ids[i + 1] end
      if kind == '3' then left = left - permits end
      holding[#holding + 1] = ids[i + 1]
    end
    at = at + 32
  end
end

-- Lets claims on a lock hold that can by now. Holders are the first in its queue, so nobody waits if the last one holds.
local function pass_on(lock)
  local last = redis.call('ZRANGE', P .. 'queue:' .. lock, -1, -1)[1]
  if last and not redis.call('HGET', P .. 'claim:' .. last, 'held') then front(lock) end
end

local function end_session(session)
  local locks = {}
  for _, id in ipairs(redis.call('SMEMBERS', P .. 'claims:' .. session)) do
    local lock = drop(id)
    if lock then locks[lock] = true end
  end
  redis.call('DEL', P .. 'claims:' .. session, P .. 'wanted:' .. session, P .. 'news:' .. session)
  redis.call('ZREM', P .. 'sessions', session)
  for lock in pairs(locks) do pass_on(lock) end
end

-- Ends the sessions whose time has passed. Their clients may be alive.
local function end_late()
  -- The clock was set back.
  for _, session in ipairs(redis.call('ZRANGEBYSCORE', P .. 'sessions', '(' .. text(now + longest), '+inf')) do
    redis.call('ZADD', P .. 'sessions', text(now + longest), session)
  end
  for _, session in ipairs(redis.call('ZRANGEBYSCORE', P .. 'sessions', '-inf', now)) do
    end_session(session)
    publish(session, 0, '')
  end
end

local function is_alive(session)
  local ends = redis.call('ZSCORE', P .. 'sessions', session)
  return ends and tonumber(ends) > now
end

local function contains(list, wanted)
  for _, one in ipairs(list) do
    if tonumber(one) == tonumber(wanted) then return true end
  end
  return false
end

-- What is shown of a claim.
local function shown(id)
  return redis.call('HMGET', P .. 'claim:' .. id, 'number', 'lock', 'since', 'host', 'pid', 'thread', 'label')
end

-- The nearest claim before that number which keeps one of that kind out.
local function ahead(lock, number, kind)
  local at = 0
  while true do
    local ids = redis.call('ZREVRANGEBYSCORE', P .. 'queue:' .. lock, '(' .. number, '-inf', 'LIMIT', at, 32)
    if #ids == 0 then return {} end
    for _, id in ipairs(ids) do
      local its = redis.call('HGET', P .. 'claim:' .. id, 'kind')
      if not its then
        -- An operator has deleted it.
        redis.call('ZREM', P .. 'queue:' .. lock, id)
      elseif kind ~= '2' or its ~= '2' then
        return shown(id)
      else
        at = at + 1
      end
    end
  end
end

local steps = {}

-- A client has connected, which last had an answer from the run `before`, so many milliseconds ago. Claims that came to
-- hold there may be unknown here: their holders believe in them for up to a lease after that answer.
function steps.hello(before, age, longest_there)
  RUN = string.match(redis.call('INFO', 'server'), 'run_id:(%w+)')
  local there = tonumber(longest_there) or 0
  longest = math.max(longest, there)
  -- Or the next step would take a quiet time of that length for one of a clock that was set back.
  keep_longest(there)
  is_settled()
  if before ~= '' and before ~= RUN then
    local till = now - tonumber(age) + longest
    if till > quiet then keep_quiet(till) end
  end
  return { 'run', RUN, text(longest) }
end

function steps.begin(session)
  end_late()
  keep_longest(LEASE)
  is_settled()
  redis.call('ZADD', P .. 'sessions', text(now + LEASE), session)
  return {}
end

function steps.renew(session)
  -- A session whose time has passed is over, even where nobody has ended it yet.
  if not is_alive(session) then return { '0' } end
  redis.call('ZADD', P .. 'sessions', text(now + LEASE), session)
  return { '1', text(longest) }
end

steps['end'] = function(session)
  end_session(session)
  return {}
end

function steps.claim(id, session, lock, kind, permits, limit, unless_blocked, host, pid, thread, label)
  end_late()
  if not is_alive(session) then return { 'over' } end
  if kind == '3' then
    local known = tonumber(limit_of(lock) or limit)
    if known < tonumber(permits) then return { 'few' } end
  end
  local key = P .. 'claim:' .. id
  local made = redis.call('HMGET', key, 'session', 'number')
  local number = made[2]
  if made[1] and made[1] ~= session then
    -- It was made on an earlier session, and ends with that.
    drop(id)
    number = nil
  end
  if not number then
    -- Above all that can have been given before, by the time of day where that was lost.
    number = text(math.max(micros, last + 1))
    redis.call('HSET', key, 'number', number, 'session', session, 'lock', lock, 'kind', kind, 'permits', permits,
      'since', text(now), 'host', host, 'pid', pid, 'thread', thread, 'label', label)
    redis.call('ZADD', P .. 'queue:' .. lock, number, id)
    redis.call('SADD', P .. 'claims:' .. session, id)
    if kind == '3' and not limit_of(lock) then redis.call('SET', P .. 'given:' .. lock, limit) end
  end
  local holds = contains(front(lock, id), number)
  if not holds and unless_blocked == '1' then
    local before = ahead(lock, number, kind)
    drop(id)
    return { 'blocked', '0', unpack(before) }
  end
  if tonumber(number) > last then redis.call('HSET', P .. 'state', 'number', number) end
  if holds then return { 'holds', number } end
  return { 'waits', number, unpack(ahead(lock, number, kind)) }
end

function steps.release(id)
  local lock = drop(id)
  if not lock then return { '0' } end
  pass_on(lock)
  return { '1' }
end

function steps.front(lock)
  local holding, next_one = front(lock)
  -- Without unpack, which takes a few thousand at most.
  table.insert(holding, 1, next_one or '')
  table.insert(holding, 2, limit_of(lock) or '')
  return holding
end

function steps.ahead(lock, number, kind) return ahead(lock, number, kind) end

function steps.contenders(lock, most)
  end_late()
  local holds, rows = {}, {}
  for _, number in ipairs((front(lock))) do holds[number] = true end
  for _, id in ipairs(redis.call('ZRANGE', P .. 'queue:' .. lock, 0, tonumber(most) - 1)) do
    local claim = shown(id)
    -- An operator may have deleted it.
    if claim[1] then
      rows[#rows + 1] = holds[claim[1]] and '1' or '0'
      for i = 1, 7 do rows[#rows + 1] = claim[i] end
    end
  end
  return rows
end

function steps.revoke(lock, number, field, value)
  end_late()
  local id = redis.call('ZRANGEBYSCORE', P .. 'queue:' .. lock, number, number)[1]
  if not id then return { '0' } end
  front(lock)
  local key = P .. 'claim:' .. id
  local claim = redis.call('HMGET', key, 'session', 'held')
  local session = claim[1]
  -- Also one that holds above a limit that was lowered.
  if not claim[2] then return { '0' } end
  redis.call('HSET', key, field, value)
  redis.call('SADD', P .. 'wanted:' .. session, id)
  tell(session, '')
  return { '1' }
end

function steps.is_there(lock, number)
  return { tostring(redis.call('ZCOUNT', P .. 'queue:' .. lock, number, number)) }
end

function steps.wanted(session)
  if not is_alive(session) then return { 'over' } end
  local wanted = { 'alive', tostring(redis.call('SCARD', P .. 'claims:' .. session)) }
  for _, id in ipairs(redis.call('SMEMBERS', P .. 'wanted:' .. session)) do
    local claim = redis.call('HMGET', P .. 'claim:' .. id, 'number', 'asked', 'grace')
    for field = 2, 3 do
      if claim[field] then
        wanted[#wanted + 1] = claim[1]
        wanted[#wanted + 1] = field == 2 and 'asked' or 'grace'
        wanted[#wanted + 1] = claim[field]
      end
    end
  end
  return wanted
end

function steps.numbers(session)
  if not is_alive(session) then return { 'over' } end
  local numbers = { 'alive' }
  for _, id in ipairs(redis.call('SMEMBERS', P .. 'claims:' .. session)) do
    local number = redis.call('HGET', P .. 'claim:' .. id, 'number')
    if number then
      numbers[#numbers + 1] = number
      numbers[#numbers + 1] = id
    end
  end
  return numbers
end

function steps.limit(lock) return { limit_of(lock) or '' } end

function steps.set_limit(lock, limit)
  redis.call('SET', P .. 'limit:' .. lock, limit)
  redis.call('DEL', P .. 'given:' .. lock)
  front(lock)
  -- Claims that want more than there is fail when their clients look.
  for _, id in ipairs(redis.call('ZRANGE', P .. 'queue:' .. lock, 0, -1)) do
    local claim = redis.call('HMGET', P .. 'claim:' .. id, 'permits', 'session')
    if claim[1] and tonumber(claim[1]) > tonumber(limit) then tell(claim[2], lock) end
  end
  return {}
end

function steps.news(session) return { redis.call('GET', P .. 'news:' .. session) or '0' } end

-- Ends the sessions whose time has passed; gives how long it takes until there is something to be found again.
function steps.sweep()
  end_late()
  is_settled()
  local first = redis.call('ZRANGE', P .. 'sessions', 0, 0, 'WITHSCORES')[2]
  local left = first and tonumber(first) - now
  if quiet > now then left = math.min(left or quiet - now, quiet - now) end
  return { left and text(math.max(left, 1)) or '' }
end

-- For how long nobody comes to hold.
function steps.quiet()
  is_settled()
  return { text(math.max(quiet - now, 0)) }
end

function steps.raise_tokens(above)
  if tonumber(above) > last then redis.call('HSET', P .. 'state', 'number', above) end
  return {}
end

return steps[step](unpack(ARGV, 5))
