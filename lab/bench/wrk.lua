-- POST a JSON-RPC body with a fresh message id each time; count every answer that is not the expected one.
-- env BODY (with @ID@), EXPECT (plain substrings, one a line), SALT
local parts, n = {}, 0
bad = 0 -- global: read from done()
local expect, threads = {}, {}

function setup(thread)
  table.insert(threads, thread)
end

function init(args)
  for text in (os.getenv("BODY") .. "@ID@"):gmatch("(.-)@ID@") do table.insert(parts, text) end
  for text in os.getenv("EXPECT"):gmatch("[^\n]+") do table.insert(expect, text) end
  salt = os.getenv("SALT")
  wrk.headers["Content-Type"] = "application/json"
  wrk.headers["A2A-Version"] = "1.0"
end

function request()
  n = n + 1
  return wrk.format("POST", nil, nil, table.concat(parts, salt .. n))
end

function response(status, headers, body)
  local ok = status == 200
  for _, text in ipairs(expect) do ok = ok and body:find(text, 1, true) ~= nil end
  if not ok then
    bad = bad + 1
    if bad == 1 then io.stderr:write("BAD ", status, " ", body:sub(1, 300), "\n") end
  end
end

function done(summary, latency, requests)
  local wrong = 0
  for _, thread in ipairs(threads) do wrong = wrong + thread:get("bad") end
  local e = summary.errors
  io.write(string.format(
    'RESULT {"requests":%d,"seconds":%f,"bad":%d,"socket_errors":%d,"p50":%f,"p99":%f}\n',
    summary.requests, summary.duration / 1e6, wrong, e.connect + e.read + e.write + e.timeout,
    latency:percentile(50) / 1e3, latency:percentile(99) / 1e3))
end
