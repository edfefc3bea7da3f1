"""The proxy for every Node.js from 18 on: a program text for `--require`, used instead of Node's own switch.

`fetch` and every agent of `http` and `https` then reach other machines through a CONNECT to the proxy that the environment
names, and a refusal is an error with the proxy's reason. Node's own switch (`NODE_USE_ENV_PROXY`, from 22.21 and 24.5) doubles
its start, leaves out agents that a script makes itself, and hides the reason from `fetch`. This opens no way out:
without it those clients find no network at all. Knows nothing of the sandbox.
"""

from __future__ import annotations

from typing import Final

PRELOAD: Final = rb"""
"use strict";
const { HTTP_PROXY, NO_PROXY = "" } = process.env;
if (HTTP_PROXY) {
  const http = require("node:http");
  const net = require("node:net");
  const proxy = new URL(HTTP_PROXY);
  const near = new Set(NO_PROXY.split(",").map((name) => name.trim().toLowerCase()));
  const bare = (host) => host.toLowerCase().replace(/^\[(.*)\]$/, "$1");
  const isNear = (host) => near.has(bare(host));

  // done(error) or done(null, socket), the socket being as good as one to the target
  const tunnel = (host, port, done) => {
    const name = bare(host);
    const target = `${name.includes(":") ? `[${name}]` : name}:${port}`;
    const request = http.request({
      method: "CONNECT",
      path: target,
      headers: { host: target },
      createConnection: () => net.connect(Number(proxy.port), proxy.hostname),
    });
    request.once("error", done);
    request.once("connect", (answer, socket, head) => {
      if (answer.statusCode === 200) {
        if (head.length) socket.unshift(head);
        done(null, socket);
      } else {
        socket.destroy();
        const what = [502, 504].includes(answer.statusCode) ? "Not reached" : "Refused by the sandbox";
        const error = new Error(`${what}: ${answer.statusMessage}`);
        error.stack = String(error); // where in here it was made tells nobody anything
        done(Object.assign(error, { code: "ERR_PROXY_TUNNEL", statusCode: answer.statusCode }));
      }
    });
    request.end();
  };

  // wrap(socket, direct, options) makes of a tunnel what the agent's own createConnection, direct, makes of a target
  let active = true;
  const redirect = (agent, wrap) => {
    const direct = agent.createConnection;
    agent.createConnection = function (options, done) {
      const known = options !== null && typeof options === "object" && typeof done === "function";
      if (!active || !known || options.socket || options.socketPath || !options.host || isNear(options.host)) {
        return direct.apply(this, arguments);
      }
      tunnel(options.host, options.port, (error, socket) => {
        if (error) done(error);
        else done(null, wrap(socket, direct.bind(this), options));
      });
    };
  };
  // The proxy ends a plain connection after one answer, so no such socket is kept for a second request.
  const plain = new WeakSet();
  const keep = http.Agent.prototype.keepSocketAlive;
  http.Agent.prototype.keepSocketAlive = function (socket) {
    return !plain.has(socket) && keep.call(this, socket);
  };
  redirect(http.Agent.prototype, (socket) => {
    plain.add(socket);
    return socket;
  });
  // Loading https, and the undici behind fetch, costs more than the rest of Node's start: only when they are used.
  const add = http.Agent.prototype.addRequest;
  http.Agent.prototype.addRequest = function (...words) {
    if (this.protocol === "https:") {
      http.Agent.prototype.addRequest = add;
      redirect(require("node:https").Agent.prototype, (socket, direct, options) => direct({ ...options, socket }));
    }
    return add.apply(this, words);
  };

  const installDispatcher = () => {
    const keys = [2, 1].map((version) => Symbol.for(`undici.globalDispatcher.${version}`));
    globalThis.Headers; // loads the built-in undici, which then stands under a key if nothing else does
    const nameAt = (key) => globalThis[key]?.constructor?.name;
    const known = keys.filter((key) => nameAt(key) === "Agent");
    if (!known.length) {
      const chosen = keys.some((key) => /.(Agent|Client|Pool)$/.test(nameAt(key)));
      if (chosen || !http.setGlobalProxyFromEnv) return; // what the script chose itself stays
      active = false; // an undici that is not known here: all as this Node does it itself
      http.setGlobalProxyFromEnv();
      return;
    }
    const { constructor: Agent } = globalThis[known[0]];
    const tls = require("node:tls");
    const connect = ({ hostname, port, protocol, servername }, done) => {
      const secure = protocol === "https:";
      tunnel(hostname, port || (secure ? 443 : 80), (error, socket) => {
        if (error || !secure) return done(error, socket);
        const name = servername || bare(hostname);
        const shielded = tls.connect({ socket, servername: net.isIP(name) ? "" : name, ALPNProtocols: ["http/1.1"] });
        shielded.once("error", done);
        shielded.setTimeout(10_000, () => shielded.destroy(new Error(`no TLS with ${hostname} within 10 seconds`)));
        shielded.once("secureConnect", () => done(null, shielded.setTimeout(0).off("error", done)));
      });
    };
    const direct = new Agent();
    const once = new Agent({ connect, pipelining: 0 });
    const dispatcher = new (class extends Agent {
      dispatch(options, handler) {
        const { hostname, protocol } = new URL(options.origin);
        if (isNear(hostname)) return direct.dispatch(options, handler);
        return protocol === "http:" ? once.dispatch(options, handler) : super.dispatch(options, handler);
      }
    })({ connect });
    for (const key of known) globalThis[key] = dispatcher;
  };
  // WebSocket is left alone: only to look at it loads undici.
  const { fetch } = globalThis;
  let installed = false;
  const first = function (...words) {
    if (!installed) {
      installed = true;
      installDispatcher();
    }
    return fetch.apply(this, words);
  };
  if (fetch) globalThis.fetch = Object.defineProperty(first, "name", { value: "fetch" });

  // for the Node.js programs that the script starts
  const { NODE_OPTIONS = "" } = process.env;
  if (!NODE_OPTIONS.includes(__filename)) process.env.NODE_OPTIONS = `${NODE_OPTIONS} --require ${__filename}`.trim();
}
""".lstrip()
