--- Examples of manifests, and calls of texts with what they give, as tests: listed and run by the server, one run after the other.
local M = {}

---@class tamis.Test
---@field id string
---@field label string
---@field kind 'module'|'test'
---@field parent? string
---@field textDocument { uri: string }
---@field range lsp.Range

---@class tamis.TestState
---@field tag 'enqueued'|'started'|'passed'|'failed'|'skipped'
---@field message? string
---@field expected? string
---@field actual? string
---@field range? lsp.Range

---@class tamis.TestRun
---@field client vim.lsp.Client
---@field ids string[]?
---@field on_state fun(id: string, state: tamis.TestState)
---@field on_end fun(fault: string?)

---@type tamis.TestRun[] the first is under way
local runs = {}
local begin

--- Ends the run that is under way and begins the next.
local function finish(fault)
  local run = table.remove(runs, 1)
  if run then
    run.on_end(fault)
  end
  if runs[1] then
    begin(runs[1])
  end
end

function begin(run)
  if run.client:is_stopped() then
    return finish('the server has stopped')
  end
  local params = run.ids and { include = run.ids } or vim.empty_dict()
  run.client:request('experimental/runTest', params, function(fault)
    if fault and runs[1] == run then
      finish(fault.message)
    end
  end)
end

---@param client vim.lsp.Client
---@param done fun(tests: tamis.Test[], fault: string?)
function M.list(client, done)
  client:request('experimental/discoverTest', vim.empty_dict(), function(fault, found)
    done(found and found.tests or {}, fault and fault.message)
  end)
end

--- Runs tests, all of them without ids, when those before have ended.
---@param run tamis.TestRun
function M.run(run)
  table.insert(runs, run)
  if #runs == 1 then
    begin(run)
  end
end

--- Ends a run; its tests that did not end are skipped.
---@param run tamis.TestRun
function M.stop(run)
  if runs[1] == run then
    run.client:notify('experimental/abortRunTest', vim.empty_dict())
  end
  for at = 2, #runs do
    if runs[at] == run then
      table.remove(runs, at)
      return run.on_end()
    end
  end
end

--- What the server tells of the run that is under way.
---@param client_id integer
function M.told(client_id, params)
  local run = runs[1]
  if run and run.client.id == client_id then
    run.on_state(params.testId, params.state)
  end
end

---@param client_id integer
function M.ended(client_id)
  if runs[1] and runs[1].client.id == client_id then
    finish()
  end
end

--- A server that is gone ends no run any more.
function M.detached()
  if runs[1] and runs[1].client:is_stopped() then
    finish('the server has stopped')
  end
end

return M
