-- The load: as many keys as the first argument says, and the counts in one line at the end.

function init(args)
  local keys = tonumber(args[1])
  if keys == 1 then
    -- Without a function `request` wrk sends the same bytes again and again.
    wrk.headers["x-api-key"] = "the-only-key"
    return
  end
  local requests = {}
  for key = 1, keys do
    requests[key] = wrk.format("GET", "/", { ["x-api-key"] = string.format("%016x", key * 2654435761) })
  end
  local at = 0
  request = function()
    -- A step that shares no divisor with the number of keys visits them all, never neighbours in turn.
    at = (at + 7919) % keys
    return requests[at + 1]
  end
end

function done(summary)
  local errors = summary.errors
  local broken = errors.connect + errors.read + errors.write + errors.timeout
  io.write(string.format("counts %d %d %d %d\n", summary.requests, summary.duration, errors.status, broken))
end
