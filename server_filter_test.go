package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"strings"
	"testing"
)

// opened is a client of one era: it sends a request and returns the answer.
func opened(t *testing.T, s *Server, version, capabilities string) (*wireClient, func(id, method, params string) string) {
	t.Helper()
	c, _ := dialServer(t, s)
	if revisionOf(version).modern {
		return c, func(id, method, params string) string {
			t.Helper()
			return c.call(modernRequest(id, method, params, capabilities))
		}
	}
	c.initialize(version, capabilities)
	return c, func(id, method, params string) string { t.Helper(); return c.call(request(id, method, params)) }
}

// filterServer has entries of every kind, of which those named hidden are
// shown to nobody.
func filterServer(opts *ServerOptions) *Server {
	opts.Filter = func(_ context.Context, _ *Request, name string) bool { return !strings.Contains(name, "hidden") }
	opts.Complete = func(context.Context, *Request, *CompleteParams) (*CompleteResult, error) { return nil, nil }
	s := emptyServer(opts)
	for i := range 9 {
		name := fmt.Sprintf("hidden%d", i)
		if i%4 == 3 {
			name = fmt.Sprintf("n%d", i)
		}
		rawTool(s, name, func(_ context.Context, req *Request) (*CallToolResult, error) { return textResult("%s", req.Name), nil })
		s.AddPrompt(Prompt{Name: name, Arguments: []PromptArgument{{Name: "a", Required: true}}}, func(context.Context, *Request) (*GetPromptResult, error) { return nil, nil })
		read := func(context.Context, *Request) (*ReadResourceResult, error) {
			return &ReadResourceResult{Contents: []ResourceContents{{Text: name}}}, nil
		}
		s.AddResource(Resource{URI: "test://" + name, Name: name}, read)
		s.AddResourceTemplate(ResourceTemplate{URITemplate: "test://" + name + "/{x}", Name: name}, read)
	}
	return s
}

func TestFilterHidesAsIfNotRegistered(t *testing.T) {
	shows(t, "tools.error.unknown", "resources.error.not-found", "prompts.error.name", "completion.error.ref")
	leakCheck(t)
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		_, ask := opened(t, filterServer(&ServerOptions{}), version, "{}")
		for _, c := range []struct{ method, params string }{
			{"tools/call", `"name":"%s"`}, {"tools/call", `"name":"%s","arguments":[]`},
			{"prompts/get", `"name":"%s"`}, {"prompts/get", `"name":"%s","arguments":{"a":"x"}`},
			{"resources/read", `"uri":"test://%s"`}, {"resources/read", `"uri":"test://%s/1"`},
			{"resources/subscribe", `"uri":"test://%s"`}, {"resources/unsubscribe", `"uri":"test://%s/1"`},
			{"completion/complete", `"ref":{"type":"ref/prompt","name":"%s"},"argument":{"name":"a","value":""}`},
			{"completion/complete", `"ref":{"type":"ref/resource","uri":"test://%s"},"argument":{"name":"a","value":""}`},
			{"completion/complete", `"ref":{"type":"ref/resource","uri":"test://%s/{x}"},"argument":{"name":"a","value":""}`},
		} {
			hidden := ask("1", c.method, fmt.Sprintf(c.params, "hidden0"))
			unknown := ask("1", c.method, fmt.Sprintf(c.params, "nothing"))
			if memberOf(t, hidden, "error") == "" || hidden != strings.ReplaceAll(unknown, "nothing", "hidden0") {
				t.Errorf("%s %s %s: hidden %s, unknown %s", version, c.method, c.params, hidden, unknown)
			}
		}
		fits(t, ask("2", "tools/call", `"name":"n3"`), `{"result":{"content":[{"text":"n3"}]}}`)
		fits(t, ask("2", "resources/read", `"uri":"test://n3/1"`), `{"result":{"contents":[{"text":"n3"}]}}`)
	}
}

// Pages are full though entries between are hidden; the last has no cursor,
// and no cursor tells how many there are.
func TestFilterAndPages(t *testing.T) {
	shows(t, "pagination.operations", "pagination.stable", "caching.scope.pages", "caching.hints", "caching.scope.value")
	leakCheck(t)
	for size, want := range map[int]string{1: "n3|n7", 2: "n3 n7", 9: "n3 n7"} {
		_, ask := opened(t, filterServer(&ServerOptions{PageSize: size, Cache: CacheHints{TTLMs: 5, CacheScope: "public"}}), "2026-07-28", "{}")
		for method, member := range map[string]string{"tools/list": "tools", "prompts/list": "prompts", "resources/list": "resources", "resources/templates/list": "resourceTemplates"} {
			var pages []string
			for cursor := ""; ; {
				got := ask("1", method, cursor)
				fits(t, got, `{"result":{"ttlMs":5,"cacheScope":"private"}}`) // others see other lists
				if strings.Contains(got, "hidden") {
					t.Fatalf("leaked: %s", got)
				}
				var entries []struct{ Name string }
				json.Unmarshal([]byte(memberOf(t, got, "result", member)), &entries)
				var names []string
				for _, e := range entries {
					names = append(names, e.Name)
				}
				pages = append(pages, strings.Join(names, " "))
				next := memberOf(t, got, "result", "nextCursor")
				if next == "" || len(pages) > 9 {
					break
				}
				cursor = `"cursor":` + next
			}
			if got := strings.Join(pages, "|"); got != want {
				t.Errorf("%s by %d: %s, want %s", method, size, got, want)
			}
		}
	}
	key := &cursorKey{make([]byte, 32), "tools/list"}
	seen := map[string]bool{}
	for n := 1; n < 300; n++ {
		c := key.write(n)
		if key.read(c) != n || seen[c[:4]] && n < 50 { // the first bytes do not count up
			t.Fatalf("cursor %d: %s", n, c)
		}
		seen[c[:4]] = true
	}
}

// A listen is not told of what its client may not see, nor of what nobody
// can read.
func TestListenHonoursWhatCanBeRead(t *testing.T) {
	shows(t, "subs.ack.subset", "subs.ack.empty", "subs.updated.only-listed")
	leakCheck(t)
	s := filterServer(&ServerOptions{})
	c, _ := dialServer(t, s)
	c.send(listenFrame("1", `{"resourceSubscriptions":["test://hidden0","test://n3","","nothing","test://none","test://n7/5","test://n3","test://hidden1/1"]}`))
	fits(t, c.next(), `{"params":{"notifications":{"resourceSubscriptions":["test://n3","test://n7/5"]}}}`)
	s.ResourceUpdated("test://hidden0")
	s.ResourceUpdated("test://none")
	s.ResourceUpdated("")
	s.ResourceUpdated("test://n7/5")
	fits(t, c.next(), `{"method":"notifications/resources/updated","params":{"uri":"test://n7/5"}}`)
	c.send(listenFrame("2", `{"resourceSubscriptions":["test://none"]}`))
	fits(t, c.next(), `{"params":{"notifications":{"resourceSubscriptions":[]}}}`)
	// Where a handler of the user's reads, only that knows what there is.
	s.Handle("resources/read", func(context.Context, *Request) (any, error) { return nil, nil })
	c.send(listenFrame("3", `{"resourceSubscriptions":["test://none",""]}`))
	fits(t, c.next(), `{"params":{"notifications":{"resourceSubscriptions":["test://none"]}}}`)
}

// Filter is the program's own code: it may use the server, and fail.
func TestFilterMayUseTheServer(t *testing.T) {
	shows(t, "errors.internal")
	leakCheck(t)
	var s *Server
	s = emptyServer(&ServerOptions{Filter: func(_ context.Context, req *Request, name string) bool {
		if name == "panic" {
			panic("secret")
		}
		s.RemovePrompts("none")
		s.ResourceUpdated(name)
		return req.Session() != nil
	}})
	rawTool(s, "a", func(context.Context, *Request) (*CallToolResult, error) { return nil, nil })
	s.AddResourceTemplate(ResourceTemplate{URITemplate: "test://{x}", Name: "t"}, func(context.Context, *Request) (*ReadResourceResult, error) {
		return &ReadResourceResult{}, nil
	})
	_, ask := opened(t, s, "2026-07-28", "{}") // which hears of no change that it did not ask for
	fits(t, ask("1", "tools/list", ""), `{"result":{"tools":[{"name":"a"}]}}`)
	fits(t, ask("2", "tools/call", `"name":"a"`), `{"result":{"content":[]}}`)
	s.AddPrompt(Prompt{Name: "panic"}, func(context.Context, *Request) (*GetPromptResult, error) { return nil, nil })
	got := ask("3", "prompts/get", `"name":"panic"`)
	fits(t, got, `{"error":{"code":-32603}}`)
	fits(t, ask("4", "prompts/list", ""), `{"error":{"code":-32603}}`)
}

// A list is encoded once for a revision, and again when it has changed.
func TestListsAreEncodedOnce(t *testing.T) {
	shows(t, "tools.list.deterministic", "tools.list.no-variance", "prompts.list.no-variance", "resources.list.no-variance")
	leakCheck(t)
	s := testServer(&ServerOptions{PageSize: 2, Cache: CacheHints{TTLMs: 1000, CacheScope: "public"}})
	lists := []string{"tools/list", "prompts/list", "resources/list", "resources/templates/list"}
	first := map[string]string{}
	for _, version := range []string{"2024-11-05", "2025-11-25", "2026-07-28"} {
		_, ask := opened(t, s, version, "{}")
		_, other := opened(t, s, version, "{}")
		for _, method := range lists {
			first[version+method] = ask("1", method, "")
			ask("2", "tools/call", `"name":"add","arguments":{"a":1,"b":2}`)
			for range 2 {
				if got := other("1", method, `"x":1`); got != first[version+method] {
					t.Errorf("%s %s: %s, then %s", version, method, first[version+method], got)
				}
			}
			if modern := `{"result":{"resultType":"complete","ttlMs":1000,"cacheScope":"public","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"test"}}}}`; version == "2026-07-28" {
				fits(t, first[version+method], modern)
			} else {
				fits(t, first[version+method], `{"result":{"resultType":null,"ttlMs":null,"cacheScope":null,"_meta":null}}`)
			}
		}
	}
	_, ask := opened(t, s, "2026-07-28", "{}")
	again := `"cursor":` + memberOf(t, first["2026-07-28tools/list"], "result", "nextCursor")
	second := ask("1", "tools/list", again)
	fits(t, second, `{"result":{"tools":[{"name":"count"},{"name":"wait"}],"cacheScope":"public","ttlMs":1000}}`)
	s.RemoveTools("add")
	fits(t, ask("1", "tools/list", ""), `{"result":{"tools":[{"name":"ask"},{"name":"count"}]}}`)
	fits(t, ask("1", "tools/list", again), `{"result":{"tools":[{"name":"count"},{"name":"wait"}]}}`)
	s.AddTool(Tool{Name: "ask", Title: "new", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(context.Context, *Request) (*CallToolResult, error) { return nil, nil })
	fits(t, ask("1", "tools/list", ""), `{"result":{"tools":[{"name":"ask","title":"new"},{"name":"count"}]}}`)
	fits(t, ask("1", "server/discover", ""), `{"result":{"cacheScope":"public","ttlMs":1000}}`)
	fits(t, ask("1", "resources/read", `"uri":"test://a"`), `{"result":{"cacheScope":"private","ttlMs":0}}`)
}

// Middleware sees the values that a list is made of, not its bytes.
func TestMiddlewareSeesLists(t *testing.T) {
	shows(t, "tools.list.respond")
	leakCheck(t)
	s := testServer(nil)
	s.Use(func(next Handler) Handler {
		return func(ctx context.Context, req *Request) (any, error) {
			result, err := next(ctx, req)
			if list, ok := result.(*ListToolsResult); ok {
				list.Tools = list.Tools[:1]
			}
			return result, err
		}
	})
	_, ask := opened(t, s, "2026-07-28", "{}")
	for range 2 {
		fits(t, ask("1", "tools/list", ""), `{"result":{"tools":[{"name":"add"}]}}`)
	}
}

func TestHandleDecodes(t *testing.T) {
	shows(t, "errors.invalid-params", "base.components.legacy")
	leakCheck(t)
	s := emptyServer(nil)
	type point = struct { // no type of this package
		X int64 `json:"x"`
		Y int   `json:"y,omitempty"`
	}
	Handle(s, "test/double", func(_ context.Context, _ *Request, p point) (point, error) { return point{2 * p.X, 2 * p.Y}, nil })
	Handle(s, "test/big", func(context.Context, *Request, struct{}) (r struct{ N big.Int }, err error) {
		r.N.SetInt64(7)
		return r, nil
	})
	Handle(s, "test/none", func(context.Context, *Request, struct{}) (any, error) { return nil, nil })
	Handle(s, "test/scalar", func(context.Context, *Request, *point) (int, error) { return 1, nil })
	Handle(s, "prompts/list", func(_ context.Context, _ *Request, p ListParams) (*ListPromptsResult, error) {
		return &ListPromptsResult{Prompts: []Prompt{{Name: *p.Cursor}}}, nil
	})
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		_, ask := opened(t, s, version, "{}")
		fits(t, ask("1", "test/double", `"x":9007199254740993`), `{"result":{"x":18014398509481986,"y":null}}`)
		fits(t, ask("1", "test/double", `"X":1`), `{"result":{"x":0}}`)
		fits(t, ask("1", "test/double", `"x":"1"`), `{"error":{"code":-32602,"message":"params.x must be a number"}}`)
		fits(t, ask("1", "test/big", ""), `{"result":{"N":7}}`)
		fits(t, ask("1", "test/none", ""), `{"result":{}}`)
		fits(t, ask("1", "test/scalar", ""), `{"error":{"code":-32603}}`)
		fits(t, ask("1", "prompts/list", `"cursor":"c"`), `{"result":{"prompts":[{"name":"c"}]}}`)
		fits(t, ask("1", "prompts/list", `"cursor":5`), `{"error":{"code":-32602}}`)
	}
	fits(t, func() string {
		c, _ := opened(t, s, "2025-11-25", "{}")
		return c.call(`{"jsonrpc":"2.0","id":1,"method":"test/none"}`)
	}(), `{"result":{}}`)
}
