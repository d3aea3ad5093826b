//go:build go1.25

package mcp

import (
	"context"
	"io"
	"strings"
	"testing"
)

// Faults of 2026-07-28 and of its meeting with older revisions.

// TestFault70ProbeChangesNothing: whatever came before, initialize opens a
// session, and modern requests are served by themselves.
func TestFault70ProbeChangesNothing(t *testing.T) {
	shows(t, "version.dual.concurrent", "version.dual.initialize", "stateless.no-prior-context", "discover.implement")
	leakCheck(t)
	probes := map[string][]string{
		"unknown version": {request("1", "server/discover", strings.Replace(modernMeta, "2026-07-28", "2030-01-01", 1))},
		"no _meta":        {request("1", "server/discover", "")}, "half a _meta": {request("1", "server/discover", `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}`)},
		"once": {modernRequest("1", "server/discover", "", "{}")}, "twice": {modernRequest("1", "server/discover", "", "{}"), modernRequest("1", "server/discover", "", "{}")},
		"a call": {modernRequest("1", "tools/list", "", `{"roots":{}}`)}, "a refused call": {modernRequest("1", "ping", "", "{}")}, "broken": {`{oops`}, "unknown": {request("1", "x/none", "")},
	}
	for name, frames := range probes {
		t.Run(name, func(t *testing.T) {
			leakCheck(t)
			for _, rev := range revisions[:4] {
				c, _ := dialServer(t, testServer(nil))
				for _, frame := range frames {
					c.call(frame)
				}
				c.initialize(rev.version, "{}")
				for range 2 {
					fits(t, c.call(request("2", "tools/list", "")), `{"id":2,"result":{"resultType":null}}`)
					fits(t, c.call(modernRequest("3", "tools/list", "", "{}")), `{"id":3,"result":{"resultType":"complete"}}`)
					for _, frame := range frames {
						c.call(frame)
					}
				}
				c.alive()
			}
		})
	}
}

// TestFault71WhichRefusal: each defect of a modern request has its code, with
// the data that goes with it, whatever the method.
func TestFault71WhichRefusal(t *testing.T) {
	shows(t, "meta.request.missing-32602", "version.unsupported", "meta.request.client-info-optional", "errors.method-not-found", "meta.caps.missing-error")
	leakCheck(t)
	c, _ := dialServer(t, testServer(completing()))
	const version, caps = `"io.modelcontextprotocol/protocolVersion":"2026-07-28"`, `"io.modelcontextprotocol/clientCapabilities":{}`
	for _, call := range serverCalls {
		if call.method == methodInitialize || call.method == methodListen {
			continue
		}
		params := strings.TrimSuffix(strings.TrimPrefix(call.params, "{"), "}")
		if params != "" {
			params += ","
		}
		ask := func(meta string) string { return c.call(request("1", call.method, params+`"_meta":{`+meta+`}`)) }
		fits(t, ask(version), `{"error":{"code":-32602}}`)
		fits(t, ask(`"io.modelcontextprotocol/protocolVersion":"2031-01-01",`+caps), `{"error":{"code":-32022,"data":{"supported":["2026-07-28"],"requested":"2031-01-01"}}}`)
		fits(t, ask(`"io.modelcontextprotocol/protocolVersion":"2025-06-18",`+caps), `{"error":{"code":-32022,"data":{"supported":["2026-07-28"],"requested":"2025-06-18"}}}`)
		want := `{"result":{"resultType":"complete"},"error":null}`
		if !methodDefined(call.method, rev20260728, true) {
			want = `{"error":{"code":-32601}}`
		}
		fits(t, ask(version+","+caps), want)
		fits(t, ask(version+","+caps+`,"io.modelcontextprotocol/clientInfo":{"name":"n","version":"v"},"example.com/x":null`), want)
		if call.method != methodPing {
			fits(t, ask(caps), `{"error":{"code":-32602}}`)
		}
	}
	fits(t, c.call(modernRequest("1", "tools/call", `"name":"ask"`, `{"roots":{},"sampling":{}}`)), `{"error":{"code":-32021,"data":{"requiredCapabilities":{"elicitation":{}}}}}`)
}

// TestFault74ListenDoesNotBlock: behind any number of subscriptions, on a
// byte stream, everything is answered; what is not honoured is not told.
func TestFault74ListenDoesNotBlock(t *testing.T) {
	shows(t, "subs.concurrent", "subs.ack.first", "subs.ack.subset", "subs.id.value", "subs.stdio.interleave")
	leakCheck(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s := emptyServer(nil)
	rawTool(s, "t", func(context.Context, *Request) (*CallToolResult, error) { return nil, nil })
	in, out, ran := pipeServer(t, ctx, s)
	ids := append([]string{`5`, `"5"`}, oddIDs...)
	for _, id := range ids {
		io.WriteString(in, listenFrame(id, `{"toolsListChanged":true,"promptsListChanged":true,"resourceSubscriptions":["x:y"]}`)+"\n")
		fits(t, readLine(t, out), `{"method":"notifications/subscriptions/acknowledged","params":{"notifications":{"toolsListChanged":true,"promptsListChanged":null,"resourceSubscriptions":null},"_meta":{"io.modelcontextprotocol/subscriptionId":`+id+`}}}`)
		io.WriteString(in, modernRequest("4", "tools/list", "", "{}")+"\n")
		fits(t, readLine(t, out), `{"id":4,"result":{"tools":[{"name":"t"}]}}`)
	}
	s.ResourceUpdated("x:y")
	rawTool(s, "more", func(context.Context, *Request) (*CallToolResult, error) { return nil, nil })
	told := map[string]int{}
	for range ids {
		line := readLine(t, out)
		fits(t, line, `{"id":null,"method":"notifications/tools/list_changed"}`)
		told[memberOf(t, line, "params", "_meta", metaSubscriptionID)]++
	}
	for _, id := range ids {
		if told[id] != 1 {
			t.Errorf("%s was told %d times", id, told[id])
		}
	}
	go io.Copy(io.Discard, out)
	in.Close()
	if err := soon(t, "the end with subscriptions open", ran); err != nil {
		t.Error(err)
	}
}

// TestFault76ResultTypes: every method has the words of its era in its result,
// and a client reads an unknown type as an error, an absent one as complete.
func TestFault76ResultTypes(t *testing.T) {
	shows(t, "base.resulttype.present", "base.resulttype.absent-complete", "base.resulttype.unknown-invalid")
	leakCheck(t)
	for _, rev := range revisions {
		c, _ := dialServer(t, testServer(completing()))
		if !rev.modern {
			c.initialize(rev.version, "{}")
		}
		for _, call := range serverCalls {
			if !methodDefined(call.method, rev, true) || call.method == methodInitialize || call.method == methodListen || call.method == methodComplete && !rev.atLeast(rev20250326) {
				continue
			}
			params := strings.TrimSuffix(strings.TrimPrefix(call.params, "{"), "}")
			if !rev.modern {
				fits(t, c.call(request("1", call.method, params)), `{"error":null,"result":{"resultType":null,"ttlMs":null,"cacheScope":null,"_meta":null}}`)
				continue
			}
			fits(t, c.call(modernRequest("1", call.method, params, "{}")), `{"error":null,"result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"test"}}}}`)
		}
	}
}

func TestFault76ClientReadsResultTypes(t *testing.T) {
	shows(t, "base.resulttype.absent-complete", "base.resulttype.unknown-invalid")
	const body = `"tools":[],"prompts":[],"resources":[],"resourceTemplates":[],"content":[],"contents":[],"messages":[],"completion":{"values":[]}`
	eachEra(t, func(t *testing.T, version string) {
		for _, typ := range []string{``, `"complete"`, `"compl\u0065te"`, `"weird"`, `"Complete"`, `""`, `null`, `7`, `"input_required"`, `"task"`} {
			cs, _ := connected(t, version, ClientOptions{CacheSize: -1}, func(m Message) []string {
				if typ == "" {
					return []string{resultOf(m, "{"+body+"}")}
				}
				return []string{resultOf(m, `{"resultType":`+typ+`,`+body+"}")}
			})
			good := version == Version20251125 || typ == "" || strings.HasPrefix(typ, `"compl`)
			for name, err := range callEverything(t.Context(), cs.With(CallOptions{Insist: true})) {
				if (err == nil) != good || isPeers(err) {
					t.Errorf("%s with the type %s: %v", name, typ, err)
				}
			}
		}
	})
}

// callEverything makes every call that a client has, and returns their errors.
func callEverything(ctx context.Context, cs *ClientSession) map[string]error {
	errs := map[string]error{}
	_, errs["CallTool"] = cs.CallTool(ctx, "x", nil)
	_, errs["ReadResource"] = cs.ReadResource(ctx, "x:y")
	_, errs["GetPrompt"] = cs.GetPrompt(ctx, "x", nil)
	_, errs["Complete"] = cs.Complete(ctx, &CompleteParams{Ref: CompleteReference{Type: "ref/prompt", Name: "x"}, Argument: CompleteArgument{Name: "a"}})
	errs["Call"] = cs.Call(ctx, "x/custom", nil, nil)
	for _, err := range cs.Tools(ctx) {
		errs["Tools"] = err
	}
	for _, err := range cs.Prompts(ctx) {
		errs["Prompts"] = err
	}
	for _, err := range cs.Resources(ctx) {
		errs["Resources"] = err
	}
	for _, err := range cs.ResourceTemplates(ctx) {
		errs["ResourceTemplates"] = err
	}
	for _, name := range []string{"Tools", "Prompts", "Resources", "ResourceTemplates"} {
		if _, ok := errs[name]; !ok {
			errs[name] = nil
		}
	}
	return errs
}

// TestFault75InterimResultsOfAnyShape: what is no good question ends the call
// with an error of the client's own; the session goes on.
func TestFault75InterimResultsOfAnyShape(t *testing.T) {
	shows(t, "mrtr.at-least-one", "mrtr.methods.forbidden", "mrtr.client.scope")
	bubble(t, func(t *testing.T) {
		const ask = `{"method":"roots/list","params":{}}`
		for _, body := range []string{``, `"inputRequests":null`, `"inputRequests":[]`, `"inputRequests":{"k":null}`, `"inputRequests":{"k":7}`, `"inputRequests":{"k":{}}`, `"inputRequests":{"k":{"method":7}}`,
			`"inputRequests":{"k":{"method":"tools/call","params":{"name":"x"}}}`, `"inputRequests":{"k":{"method":"Roots/list"}}`, `"requestState":7`, `"requestState":{}`, `"inputRequests":{"k":` + ask + `},"requestState":[]`} {
			calls := 0
			cs, s := connected(t, Version20260728, answering(), func(m Message) []string {
				if m.Method != methodToolsCall {
					return []string{resultOf(m, `{"resultType":"input_required","inputRequests":{"k":`+ask+`}}`)}
				}
				if calls++; body != "" {
					return []string{resultOf(m, `{"resultType":"input_required",`+body+`}`)}
				}
				return []string{resultOf(m, `{"resultType":"input_required"}`)}
			})
			cs = cs.With(CallOptions{Insist: true})
			if _, err := cs.CallTool(t.Context(), "x", nil); err == nil || isPeers(err) || calls != 1 {
				t.Errorf("%s: %v after %d calls", body, err, calls)
			}
			for name, err := range callEverything(t.Context(), cs) {
				if err == nil || isPeers(err) {
					t.Errorf("%s: %v", name, err)
				}
			}
			if got := len(s.of(methodToolsList)); got != 1 {
				t.Errorf("tools/list was sent %d times", got)
			}
		}
	})
}
