// What @vscode/debugadapter-testsupport checks of an adapter: a launch sequence, breakpoints that are hit where they
// were set, stepping forwards and backwards, threads and variables. Its argument is the Python that has ptxlab.
const assert = require("assert");
const { spawnSync } = require("child_process");
const fs = require("fs");
const os = require("os");
const path = require("path");
const { DebugClient } = require("@vscode/debugadapter-testsupport");

const KERNEL = `.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 c) {
  .reg .b32 %r<4>; .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [c];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd2, %r1, 4;
  add.s64 %rd3, %rd1, %rd2;
  add.u32 %r2, %r1, 100;
  st.global.u32 [%rd3], %r2;
  ret;
}
`;
const folder = fs.mkdtempSync(path.join(os.tmpdir(), "ptxlab-"));
const program = path.join(folder, "k.ptx");
fs.writeFileSync(program, KERNEL);
// Machine code is made once, so that no request waits for it longer than DebugClient does.
const once = ["run", program, "--block", "32", "--arg", "u32[32]=zeros", "--record", path.join(folder, "once.ptxtrace")];
spawnSync(process.argv[2], ["-m", "ptxlab", ...once]);
const launch = { program, block: 32, args: ["u32[32]=zeros"] };

// DebugClient starts `runtime executable`; ptxlab needs more words, so a small script stands for them.
const starter = path.join(folder, "adapter.py");
fs.writeFileSync(starter, "import runpy, sys\nsys.argv = ['ptxlab', 'debug', '--dap']\nrunpy.run_module('ptxlab', run_name='__main__')\n");
const make = () => new DebugClient(process.argv[2], starter, "ptxlab");

const tests = {
  async "an unknown request is refused"(client) {
    await assert.rejects(client.send("illegal_request"));
  },
  async "a launch stops at its entry"(client) {
    await Promise.all([
      client.configurationSequence(),
      client.launch(launch),
      client.waitForEvent("stopped").then((event) => assert.strictEqual(event.body.reason, "entry")),
    ]);
  },
  async "a breakpoint is hit where it was set"(client) {
    await client.hitBreakpoint({ ...launch, stopOnEntry: false }, { path: program, line: 10 });
  },
  async "a conditional breakpoint waits for its condition"(client) {
    const location = { path: program, line: 10 };
    await Promise.all([
      client.waitForEvent("initialized").then(() =>
        client.setBreakpointsRequest({ source: { path: program }, breakpoints: [{ line: 10, condition: "%r1 == 9" }] })
      ).then(() => client.configurationDoneRequest()),
      client.launch({ ...launch, stopOnEntry: false }),
      client.assertStoppedLocation("breakpoint", location),
    ]);
    const answer = await client.evaluateRequest({ expression: "%tid.x" });
    assert.strictEqual(answer.body.result, "9");
  },
  async "stepping goes a line further, and back"(client) {
    await client.hitBreakpoint({ ...launch, stopOnEntry: false }, { path: program, line: 9 });
    const threadId = (await client.threadsRequest()).body.threads[0].id;
    await Promise.all([client.nextRequest({ threadId }), client.assertStoppedLocation("step", { path: program, line: 10 })]);
    await Promise.all([client.stepInRequest({ threadId }), client.assertStoppedLocation("step", { path: program, line: 11 })]);
    await Promise.all([client.stepBackRequest({ threadId }), client.assertStoppedLocation("step", { path: program, line: 10 })]);
    await Promise.all([client.reverseContinueRequest({ threadId }), client.assertStoppedLocation("breakpoint", { path: program, line: 9 })]);
  },
  async "variables of a scope"(client) {
    await client.hitBreakpoint({ ...launch, stopOnEntry: false }, { path: program, line: 11 });
    const threadId = (await client.threadsRequest()).body.threads[0].id;
    const frame = (await client.stackTraceRequest({ threadId })).body.stackFrames[0];
    const scopes = (await client.scopesRequest({ frameId: frame.id })).body.scopes;
    const registers = scopes.find((scope) => scope.name === "Registers");
    const found = (await client.variablesRequest({ variablesReference: registers.variablesReference })).body.variables;
    assert.strictEqual(found.find((one) => one.name === "%r2").value, "100");
  },
};

(async () => {
  let passed = 0;
  for (const [name, test] of Object.entries(tests)) {
    const client = make();
    await client.start(undefined);
    try {
      if (name !== "an unknown request is refused") {
        const answer = await client.initializeRequest();
        assert.strictEqual(answer.body.supportsConfigurationDoneRequest, true);
      }
      await test(client);
      passed += 1;
    } catch (problem) {
      console.error(`${name}: ${problem.stack || problem}`);
      process.exitCode = 1;
    } finally {
      await client.stop();
    }
  }
  console.log(`${passed} of ${Object.keys(tests).length} passed`);
  fs.rmSync(folder, { recursive: true });
})();
