//go:build go1.25

package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// Faults of the handshake and of capabilities.

// TestFault23Order sends every method before initialize, and every one after
// it without waiting for anything.
func TestFault23Order(t *testing.T) {
	shows(t, "lifecycle.init.first", "lifecycle.init.ping-early", "version.dual.initialize")
	leakCheck(t)
	c, _ := dialServer(t, testServer(completing()))
	for _, call := range serverCalls {
		frame := `{"jsonrpc":"2.0","id":1,"method":"` + call.method + `","params":` + call.params + `}`
		switch call.method {
		case methodInitialize:
		case methodPing:
			fits(t, c.call(frame), `{"id":1,"result":{}}`)
		default:
			fits(t, c.call(frame), `{"id":1,"error":{"code":-32602}}`)
		}
	}
	fits(t, c.call(request("1", "x/none", "")), `{"error":{"code":-32601}}`)
	for _, rev := range revisions[:4] {
		for _, call := range serverCalls {
			if !methodDefined(call.method, rev, true) || call.method == methodInitialize || call.method == methodComplete && !rev.atLeast(rev20250326) {
				continue
			}
			c, _ := dialServer(t, testServer(completing()))
			c.send(initializeFrame("0", rev.version, "{}"), `{"jsonrpc":"2.0","id":1,"method":"`+call.method+`","params":`+call.params+`}`)
			fits(t, c.next(), `{"id":0,"result":{"protocolVersion":"`+rev.version+`"}}`)
			fits(t, c.next(), `{"id":1,"result":{}}`)
		}
	}
}

// TestFault24NegotiatedVersionIsUsed: whatever is asked for, all that follows
// is of the version in the answer.
func TestFault24NegotiatedVersionIsUsed(t *testing.T) {
	shows(t, "lifecycle.op.version", "lifecycle.version.server-other", "version.dual.initialize")
	leakCheck(t)
	for _, asked := range []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28", "1999-01-01", "9999-12-31", "", "2025-11-25 ", "2025-11", "DRAFT-2026-v1"} {
		c, _ := dialServer(t, testServer(nil))
		answer := c.call(initializeFrame("0", asked, `{"roots":{},"sampling":{},"elicitation":{}}`))
		c.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		rev := revisionOf(strings.Trim(memberOf(t, answer, "result", "protocolVersion"), `"`))
		if want := revisionOf(asked); rev == nil || rev.modern || want != nil && !want.modern && want != rev || (want == nil || want.modern) && rev != rev20251125 {
			t.Fatalf("%q was answered by %s", asked, answer)
		}
		fits(t, c.call(request("1", "tools/list", "")), `{"result":{"resultType":null,"ttlMs":null,"_meta":null}}`)
		structured := `"structuredContent":null`
		if rev.atLeast(rev20250618) {
			structured = `"structuredContent":{"sum":3}`
		}
		fits(t, c.call(request("1", "tools/call", `"name":"add","arguments":{"a":1,"b":2}`)), `{"result":{"resultType":null,`+structured+`}}`)
		batch := `{"id":null,"error":{"code":-32600}}`
		if rev.batches {
			batch = `[{"id":1,"result":{}}]`
		}
		fits(t, c.call(`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`), batch)
		fits(t, c.call(request("1", "server/discover", "")), `{"error":{"code":-32601}}`)
		if rev.atLeast(rev20250618) { // asked on the way, not by a result
			fits(t, c.call(request("1", "tools/call", `"name":"ask"`)), `{"method":"elicitation/create","params":{}}`)
		} else {
			fits(t, c.call(request("1", "tools/call", `"name":"ask"`)), `{"result":{"isError":true,"resultType":null}}`)
		}
	}
}

// TestFault25SecondInitialize: whatever it says, and however often, the first
// one counts.
func TestFault25SecondInitialize(t *testing.T) {
	leakCheck(t)
	s := testServer(nil)
	rawTool(s, "who", func(_ context.Context, req *Request) (*CallToolResult, error) {
		return textResult("%s %s %t", req.Client().Name, req.Version(), req.Capabilities().Roots != nil), nil
	})
	c, _ := dialServer(t, s)
	c.initialize("2025-06-18", `{"roots":{}}`)
	for _, params := range []string{
		`{"protocolVersion":"2025-06-18","capabilities":{"roots":{}},"clientInfo":{"name":"t","version":"0"}}`,
		`{"protocolVersion":"2024-11-05","capabilities":{},"clientInfo":{"name":"other","version":"0"}}`,
		`{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"other","version":"0"}}`,
		`{"protocolVersion":"2026-07-28","capabilities":{},"clientInfo":{"name":"other","version":"0"},` + modernMeta + `}`,
	} {
		fits(t, c.call(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":`+params+`}`), `{"id":1,"result":null,"error":{"code":-32600}}`)
		fits(t, c.call(request("1", "tools/call", `"name":"who"`)), `{"result":{"content":[{"text":"t 2025-06-18 true"}]}}`)
		fits(t, c.call(`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`), `{"error":{"code":-32600}}`)
	}
	if code := memberOf(t, c.call(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`), "error", "code"); code != "-32602" && code != "-32600" {
		t.Errorf("broken params: code %s", code)
	}
	c.alive()
}

// TestFault26Capabilities: what is declared is served, what is not declared is
// not, in both eras, and nothing is null.
func TestFault26Capabilities(t *testing.T) {
	shows(t, "caps.advertise", "tools.caps", "resources.caps", "prompts.caps", "completion.caps", "logging.caps")
	noop := func(context.Context, *Request) (*CallToolResult, error) { return nil, nil }
	read := func(context.Context, *Request) (*ReadResourceResult, error) { return &ReadResourceResult{}, nil }
	for _, c := range []struct {
		name   string
		opts   *ServerOptions
		add    func(s *Server)
		caps   string
		served string // of the areas below
	}{
		{"nothing", nil, func(*Server) {}, `{"logging":{}}`, "logging"},
		{"tools", nil, func(s *Server) { rawTool(s, "t", noop) }, `{"logging":{},"tools":{"listChanged":true}}`, "logging tools"},
		{"a tool that went", nil, func(s *Server) { rawTool(s, "t", noop); s.RemoveTools("t") }, `{"logging":{},"tools":{"listChanged":true}}`, "logging tools"},
		{"prompts", nil, func(s *Server) {
			s.AddPrompt(Prompt{Name: "p"}, func(context.Context, *Request) (*GetPromptResult, error) { return nil, nil })
		}, `{"logging":{},"prompts":{"listChanged":true}}`, "logging prompts"},
		{"resources", nil, func(s *Server) { s.AddResource(Resource{URI: "test://a", Name: "a"}, read) },
			`{"logging":{},"resources":{"subscribe":true,"listChanged":true}}`, "logging resources subscribe"},
		{"templates", nil, func(s *Server) { s.AddResourceTemplate(ResourceTemplate{URITemplate: "test://{a}", Name: "a"}, read) },
			`{"logging":{},"resources":{"subscribe":true,"listChanged":true}}`, "logging resources subscribe"},
		{"completion", completing(), func(*Server) {}, `{"completions":{},"logging":{}}`, "logging completion"},
		{"by hand", &ServerOptions{Capabilities: &ServerCapabilities{Resources: &ResourcesCapability{}, Tools: &ListCapability{}, Experimental: map[string]json.RawMessage{"x": json.RawMessage(`{}`)}}},
			func(s *Server) {
				rawTool(s, "t", noop)
				s.AddResource(Resource{URI: "test://a", Name: "a"}, read)
			}, `{"experimental":{"x":{}},"resources":{},"tools":{}}`, "tools resources"},
	} {
		t.Run(c.name, func(t *testing.T) {
			leakCheck(t)
			s := emptyServer(c.opts)
			c.add(s)
			legacy, _ := dialServer(t, s)
			wantJSON(t, memberOf(t, legacy.initialize("2025-11-25", "{}"), "result", "capabilities"), c.caps)
			wantJSON(t, memberOf(t, legacy.call(modernRequest("1", "server/discover", "", "{}")), "result", "capabilities"), c.caps)
			for area, calls := range map[string][]serverCall{
				"tools": {{methodToolsList, ``}, {methodToolsCall, `"name":"x"`}}, "prompts": {{methodPromptsList, ``}, {methodPromptsGet, `"name":"x"`}},
				"resources": {{methodResourcesList, ``}, {methodTemplatesList, ``}, {methodResourcesRead, `"uri":"test://x/y"`}}, "logging": {{methodSetLevel, `"level":"info"`}},
				"subscribe": {{methodSubscribe, `"uri":"test://x/y"`}, {methodUnsubscribe, `"uri":"test://x/y"`}}, "completion": {{methodComplete, `"ref":{"type":"ref/prompt","name":"x"},"argument":{"name":"a","value":""}`}},
			} {
				for _, call := range calls {
					for _, frame := range []string{request("1", call.method, call.params), modernRequest("1", call.method, call.params, "{}")} {
						modern := strings.Contains(frame, "_meta")
						if modern && !methodDefined(call.method, rev20260728, true) {
							continue
						}
						got := legacy.call(frame)
						if served := !strings.Contains(got, `"code":-32601`); served != strings.Contains(" "+c.served+" ", " "+area+" ") {
							t.Errorf("%s: %s", frame, got)
						}
					}
				}
			}
			if !strings.Contains(c.caps, "listChanged") { // and no notice of what was not declared
				rawTool(s, "late", noop)
				s.AddResource(Resource{URI: "test://late", Name: "a"}, read)
				s.ResourceUpdated("test://a")
				legacy.alive()
			}
		})
	}
}

// A client's capabilities as they are declared, and what is served of them.
func TestFault26ClientCapabilities(t *testing.T) {
	shows(t, "elicit.caps", "sampling.caps", "roots.caps")
	questions := map[string]string{
		methodElicit:        `{"message":"?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}`,
		methodCreateMessage: `{"messages":[],"maxTokens":1}`, methodRootsList: `{}`,
	}
	all := answering()
	for _, c := range []struct {
		name string
		opts ClientOptions
		caps string
	}{
		{"nothing", ClientOptions{}, `{}`}, {"elicitation", ClientOptions{Elicit: all.Elicit}, `{"elicitation":{"form":{}}}`},
		{"sampling", ClientOptions{Sample: all.Sample}, `{"sampling":{}}`}, {"roots", ClientOptions{Roots: all.Roots}, `{"roots":{"listChanged":true}}`},
		{"declared less", ClientOptions{Elicit: all.Elicit, Sample: all.Sample, Roots: all.Roots, Capabilities: &ClientCapabilities{Roots: &RootsCapability{}}}, `{"roots":{}}`},
		{"all", all, `{"elicitation":{"form":{}},"sampling":{},"roots":{"listChanged":true}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				_, s := connected(t, Version20251125, c.opts, silent)
				wantJSON(t, string(rawMember(s.of(methodInitialize)[0].Params, "capabilities")), c.caps)
				for method, params := range questions {
					s.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, method, params))
					s.received()
					area, _, _ := strings.Cut(method, "/")
					if served := bad(s.raw[len(s.raw)-1]) == ""; served != strings.Contains(c.caps, `"`+area+`"`) {
						t.Errorf("%s: %s", method, s.raw[len(s.raw)-1])
					}
				}
			})
		})
	}
}
