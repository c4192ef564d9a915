-- What zklock keeps in Redis, and each step on it. A script runs alone, so a step is done as a whole or not at all.
--
-- <prefix>sessions        sessions by the time at which they end, in milliseconds of the server's clock
-- <prefix>claims:SESSION  the ids of its claims; <prefix>wanted:SESSION those that somebody wants to end
-- <prefix>queue:LOCK      the ids of a lock's claims by their numbers
-- <prefix>claim:ID        a claim
-- <prefix>limit:LOCK      how many permits a semaphore has
-- <prefix>number          the last number that was given; <prefix>changes counts, and announces, what has changed
-- <prefix>run             which run of the server has the claims; until <prefix>quiet nobody comes to hold
local step, P, LEASE = ARGV[1], ARGV[2], tonumber(ARGV[3])
local time = redis.call('TIME')
local micros = tonumber(time[1]) * 1000000 + tonumber(time[2])
local now = math.floor(micros / 1000)

local function text(number) return string.format('%.0f', number) end

local function changed()
  redis.call('INCR', P .. 'changes')
  redis.call('PUBLISH', P .. 'changes', '')
end

local function drop(id)
  local claim = redis.call('HMGET', P .. 'claim:' .. id, 'lock', 'session')
  if not claim[1] then return false end
  redis.call('ZREM', P .. 'queue:' .. claim[1], id)
  redis.call('SREM', P .. 'claims:' .. claim[2], id)
  redis.call('SREM', P .. 'wanted:' .. claim[2], id)
  redis.call('DEL', P .. 'claim:' .. id)
  return true
end

local function end_session(session)
  for _, id in ipairs(redis.call('SMEMBERS', P .. 'claims:' .. session)) do drop(id) end
  redis.call('DEL', P .. 'claims:' .. session, P .. 'wanted:' .. session)
  redis.call('ZREM', P .. 'sessions', session)
end

-- Ends the sessions whose time has passed.
local function end_late()
  local late = redis.call('ZRANGEBYSCORE', P .. 'sessions', '-inf', now)
  for _, session in ipairs(late) do end_session(session) end
  if #late > 0 then changed() end
end

local function is_alive(session)
  local ends = redis.call('ZSCORE', P .. 'sessions', session)
  return ends and tonumber(ends) > now
end

-- Whether somebody can come to hold. A server that was started anew, or has taken another's place, may have lost the last
-- writes: whoever held by those has lost it by its own clock when a lease has passed.
local function is_settled()
  local run = string.match(redis.call('INFO', 'server'), 'run_id:(%w+)')
  if redis.call('GET', P .. 'run') ~= run then
    local longest = math.max(LEASE, tonumber(redis.call('GET', P .. 'longest') or '0'))
    redis.call('SET', P .. 'run', run)
    redis.call('SET', P .. 'quiet', text(now + longest))
  end
  return now >= tonumber(redis.call('GET', P .. 'quiet') or '0')
end

-- The numbers of those who hold a lock, and of the first who waits. Reads no more than that.
local function front(lock)
  local left = tonumber(redis.call('GET', P .. 'limit:' .. lock) or '0')
  local settled, holding, first, at = is_settled(), {}, nil, 0
  while true do
    local ids = redis.call('ZRANGE', P .. 'queue:' .. lock, at, at + 31, 'WITHSCORES')
    if #ids == 0 then return holding, nil end
    for i = 1, #ids, 2 do
      local key = P .. 'claim:' .. ids[i]
      local claim = redis.call('HMGET', key, 'kind', 'permits', 'held')
      local kind, permits = claim[1], tonumber(claim[2])
      local holds = kind ~= '3' or permits <= left
      if first then holds = holds and kind == first and (kind == '2' or kind == '3') end
      first = first or kind
      if holds and not claim[3] then
        holds = settled
        if holds then redis.call('HSET', key, 'held', '1') end
      end
      if not holds then return holding, ids[i + 1] end
      if kind == '3' then left = left - permits end
      holding[#holding + 1] = ids[i + 1]
    end
    at = at + 32
  end
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
      if kind ~= '2' or redis.call('HGET', P .. 'claim:' .. id, 'kind') ~= '2' then return shown(id) end
    end
    at = at + 32
  end
end

local steps = {}

function steps.begin(session)
  end_late()
  if tonumber(redis.call('GET', P .. 'longest') or '0') < LEASE then
    redis.call('SET', P .. 'longest', text(LEASE))
  end
  is_settled()
  redis.call('ZADD', P .. 'sessions', text(now + LEASE), session)
  return {}
end

function steps.renew(session)
  -- One whose time has passed is over, also where nobody has ended it yet.
  if not is_alive(session) then return { '0' } end
  redis.call('ZADD', P .. 'sessions', text(now + LEASE), session)
  return { '1' }
end

steps['end'] = function(session)
  end_session(session)
  changed()
  return {}
end

function steps.claim(id, session, lock, kind, permits, limit, unless_blocked, host, pid, thread, label)
  end_late()
  if not is_alive(session) then return { 'over' } end
  if kind == '3' then
    local known = tonumber(redis.call('GET', P .. 'limit:' .. lock) or limit)
    if known < tonumber(permits) then return { 'few' } end
    redis.call('SET', P .. 'limit:' .. lock, text(known))
  end
  local key = P .. 'claim:' .. id
  -- One that was made on an earlier session goes with that.
  local of = redis.call('HGET', key, 'session')
  if of and of ~= session then drop(id) end
  local number = redis.call('HGET', key, 'number')
  if not number then
    -- Above all that can have been given before, by the time of day where that was lost.
    number = text(math.max(micros, tonumber(redis.call('GET', P .. 'number') or '0') + 1))
    redis.call('HSET', key, 'number', number, 'session', session, 'lock', lock, 'kind', kind, 'permits', permits,
      'since', text(now), 'host', host, 'pid', pid, 'thread', thread, 'label', label)
    redis.call('ZADD', P .. 'queue:' .. lock, number, id)
    redis.call('SADD', P .. 'claims:' .. session, id)
  end
  local holding = front(lock)
  if contains(holding, number) then
    redis.call('SET', P .. 'number', text(math.max(tonumber(number), tonumber(redis.call('GET', P .. 'number') or '0'))))
    changed()
    return { 'holds', number }
  end
  local before = ahead(lock, number, kind)
  if unless_blocked == '1' then
    drop(id)
    return { 'blocked', '0', unpack(before) }
  end
  redis.call('SET', P .. 'number', text(math.max(tonumber(number), tonumber(redis.call('GET', P .. 'number') or '0'))))
  changed()
  return { 'waits', number, unpack(before) }
end

function steps.release(id)
  if not drop(id) then return { '0' } end
  changed()
  return { '1' }
end

function steps.front(lock)
  local holding, next_one = front(lock)
  local limit = redis.call('GET', P .. 'limit:' .. lock)
  return { next_one or '', limit or '', unpack(holding) }
end

function steps.ahead(lock, number, kind) return ahead(lock, number, kind) end

function steps.contenders(lock, most)
  end_late()
  local holding, rows = front(lock), {}
  for _, id in ipairs(redis.call('ZRANGE', P .. 'queue:' .. lock, 0, tonumber(most) - 1)) do
    local claim = shown(id)
    rows[#rows + 1] = contains(holding, claim[1]) and '1' or '0'
    for i = 1, 7 do rows[#rows + 1] = claim[i] end
  end
  return rows
end

function steps.revoke(lock, number, field, value)
  end_late()
  local id = redis.call('ZRANGEBYSCORE', P .. 'queue:' .. lock, number, number)[1]
  if not id or not contains(front(lock), number) then return { '0' } end
  local key = P .. 'claim:' .. id
  redis.call('HSET', key, field, value)
  redis.call('SADD', P .. 'wanted:' .. redis.call('HGET', key, 'session'), id)
  changed()
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
    numbers[#numbers + 1] = redis.call('HGET', P .. 'claim:' .. id, 'number')
    numbers[#numbers + 1] = id
  end
  return numbers
end

function steps.limit(lock) return { redis.call('GET', P .. 'limit:' .. lock) or '' } end

function steps.set_limit(lock, limit)
  redis.call('SET', P .. 'limit:' .. lock, limit)
  changed()
  return {}
end

function steps.changes() return { redis.call('GET', P .. 'changes') or '0' } end

-- Ends the sessions whose time has passed; gives how long it takes until there is something to be found again.
function steps.sweep()
  end_late()
  local first = redis.call('ZRANGE', P .. 'sessions', 0, 0, 'WITHSCORES')[2]
  local left = first and tonumber(first) - now
  local quiet = tonumber(redis.call('GET', P .. 'quiet') or '0') - now
  if quiet > 0 then left = math.min(left or quiet, quiet) end
  return { left and text(math.max(left, 1)) or '' }
end

-- For how long nobody comes to hold.
function steps.quiet()
  return { text(math.max(tonumber(redis.call('GET', P .. 'quiet') or '0') - now, 0)) }
end

function steps.raise_tokens(above)
  if tonumber(above) > tonumber(redis.call('GET', P .. 'number') or '0') then redis.call('SET', P .. 'number', above) end
  return {}
end

-- Tries what the steps do; gives the commands and keys that this user may not use.
function steps.check()
  local key, denied = P .. 'check', {}
  for _, call in ipairs({
    { 'INFO', 'server' }, { 'SET', key, '0' }, { 'GET', key }, { 'INCR', key }, { 'PUBLISH', P .. 'check', '' }, { 'DEL', key },
    { 'HSET', key, 'a', '0' }, { 'HGET', key, 'a' }, { 'HMGET', key, 'a' }, { 'DEL', key },
    { 'ZADD', key, '0', 'a' }, { 'ZSCORE', key, 'a' }, { 'ZCOUNT', key, '0', '0' }, { 'ZRANGE', key, '0', '0' },
    { 'ZRANGEBYSCORE', key, '0', '0' }, { 'ZREVRANGEBYSCORE', key, '0', '0' }, { 'ZREM', key, 'a' },
    { 'SADD', key, 'a' }, { 'SCARD', key }, { 'SMEMBERS', key }, { 'SREM', key, 'a' }, { 'DEL', key },
  }) do
    local answer = redis.pcall(unpack(call))
    local why = type(answer) == 'table' and answer.err
    if why and string.find(why, 'user executing the script', 1, true) then
      denied[#denied + 1] = call[1] .. ' ' .. call[2]
    elseif why and #denied == 0 then
      return redis.error_reply(why)
    end
  end
  return denied
end

return steps[step](unpack(ARGV, 4))
