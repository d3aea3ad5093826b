//go:build go1.25

package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// numbered answers each request with the next number in a tool, prompt,
// resource and template's name, and with these cache hints.
func numbered(hints string) react {
	n := 0
	return func(m Message) []string {
		if !m.IsRequest() {
			return nil
		}
		n++
		return []string{resultOf(m, fmt.Sprintf(`{"resultType":"complete","tools":[{"name":"%d","inputSchema":{"type":"object"}}],"n":%d,"contents":[{"uri":"x:y","text":"%d"}]%s}`, n, n, n, hints))}
	}
}

// asks makes a call by its method and returns the number in its answer.
func asks(t *testing.T, cs *ClientSession, method, params string) string {
	t.Helper()
	var raw json.RawMessage
	var p any
	if params != "" {
		p = json.RawMessage(params)
	}
	if err := cs.Call(t.Context(), method, p, &raw); err != nil {
		t.Fatal(err)
	}
	return string(rawMember(raw, "n"))
}

// How long a result is good for.
func TestClientCacheTTL(t *testing.T) {
	shows(t, "caching.ttl.positive", "caching.ttl.expired", "caching.ttl.zero", "caching.ttl.negative", "caching.ttl.absent", "caching.no-background", "caching.poll-jitter")
	for _, c := range []struct {
		hints string
		fresh time.Duration
	}{
		{`,"ttlMs":60000,"cacheScope":"private"`, time.Minute}, {`,"ttlMs":60000,"cacheScope":"public"`, time.Minute}, {`,"ttlMs":1`, time.Millisecond},
		{`,"ttlMs":0,"cacheScope":"public"`, 0}, {`,"ttlMs":-1,"cacheScope":"public"`, 0}, {``, 0}, {`,"ttlMs":null`, 0}, {`,"ttlMs":"60000"`, 0}, {`,"ttlMs":1.5`, 0},
		{`,"ttlMs":9223372036854775807`, 300 * 24 * time.Hour},
	} {
		t.Run(c.hints, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				cs, s := connected(t, Version20260728, ClientOptions{}, numbered(c.hints))
				for _, method := range []string{methodToolsList, methodPromptsList, methodResourcesList, methodTemplatesList, methodResourcesRead} {
					first := asks(t, cs, method, `{"uri":"x:y"}`)
					if c.fresh == 0 {
						if asks(t, cs, method, `{"uri":"x:y"}`) == first {
							t.Errorf("%s is kept", method)
						}
						continue
					}
					time.Sleep(c.fresh - 1)
					if got := asks(t, cs, method, `{"uri":"x:y"}`); got != first {
						t.Errorf("%s is not kept: %s, then %s", method, first, got)
					}
					sent := len(s.received())
					time.Sleep(1)
					if len(s.received()) != sent {
						t.Errorf("%s was asked for in the background", method)
					}
					if c.fresh < time.Hour && asks(t, cs, method, `{"uri":"x:y"}`) == first {
						t.Errorf("%s is kept too long", method)
					}
				}
			})
		})
	}
}

// What is kept, and for which request.
func TestClientCacheKey(t *testing.T) {
	shows(t, "caching.key", "caching.no-mrtr", "caching.scope.private")
	hints := `,"ttlMs":60000,"cacheScope":"public"`
	bubble(t, func(t *testing.T) {
		cs, _ := connected(t, Version20260728, ClientOptions{}, numbered(hints))
		seen := map[string]string{}
		for _, c := range []struct{ method, params string }{
			{methodToolsList, ""}, {methodToolsList, `{"cursor":"a"}`}, {methodToolsList, `{"cursor":"A"}`}, {methodPromptsList, ""}, {methodResourcesList, ""},
			{methodTemplatesList, ""}, {methodResourcesRead, `{"uri":"x:y"}`}, {methodResourcesRead, `{"uri":"x:z"}`}, {methodResourcesRead, `{"uri":"x:y","later":1}`},
		} {
			n := asks(t, cs, c.method, c.params)
			if other := seen[n]; other != "" {
				t.Errorf("%v got the answer of %s", c, other)
			}
			seen[n] = fmt.Sprint(c)
			if again := asks(t, cs, c.method, c.params); again != n {
				t.Errorf("%v is not kept", c)
			}
		}
		for _, c := range []struct{ method, params string }{
			{methodToolsCall, `{"name":"t"}`}, {methodPromptsGet, `{"name":"t"}`}, {methodComplete, `{}`}, {"x/y", ""},
			{methodResourcesRead, `{"uri":"x:y","requestState":"s"}`}, {methodResourcesRead, `{"uri":"x:y","inputResponses":{}}`}, {methodToolsList, `{"_meta":{"a":1}}`},
		} {
			if n := asks(t, cs, c.method, c.params); asks(t, cs, c.method, c.params) == n {
				t.Errorf("%v is kept", c)
			}
		}
		n := asks(t, cs, methodToolsList, "")
		if mine := cs.With(CallOptions{Meta: Meta{"a": json.RawMessage(`1`)}}); asks(t, mine, methodToolsList, "") == n {
			t.Error("a call with _meta of its own got an old answer")
		}
		fresh := asks(t, cs.With(CallOptions{Fresh: true}), methodToolsList, "")
		if fresh == n || asks(t, cs, methodToolsList, "") != fresh {
			t.Error("a fresh answer was not asked for, or not kept")
		}
		other, _ := connected(t, Version20260728, ClientOptions{}, numbered(hints))
		if n := asks(t, other, methodToolsList, `{"cursor":"A"}`); n != "1" {
			t.Errorf("another session got the answer %s", n)
		}
	})
	// a result of rounds, though its hints allow it
	bubble(t, func(t *testing.T) {
		cs, s := connected(t, Version20260728, answering(), func(m Message) []string {
			if rawMember(m.Params, "requestState") == nil {
				return []string{resultOf(m, `{"resultType":"input_required","requestState":"s","ttlMs":60000,"inputRequests":{"k":`+askDirs+`}}`)}
			}
			return []string{resultOf(m, `{"resultType":"complete","contents":[],"ttlMs":60000}`)}
		})
		for range 2 {
			if _, err := cs.ReadResource(t.Context(), "x:y"); err != nil {
				t.Fatal(err)
			}
		}
		if n := len(s.of(methodResourcesRead)); n != 4 {
			t.Errorf("%d requests", n)
		}
	})
	// an older server says nothing of the kind, whatever it writes
	bubble(t, func(t *testing.T) {
		cs, _ := connected(t, Version20251125, ClientOptions{}, numbered(hints))
		if n := asks(t, cs, methodToolsList, ""); asks(t, cs, methodToolsList, "") == n {
			t.Error("kept at 2025-11-25")
		}
	})
	bubble(t, func(t *testing.T) {
		cs, _ := connected(t, Version20260728, ClientOptions{CacheSize: -1}, numbered(hints))
		if n := asks(t, cs, methodToolsList, ""); asks(t, cs, methodToolsList, "") == n {
			t.Error("kept without a cache")
		}
	})
}

// server/discover is kept, too, but not where the server is to answer.
func TestClientCacheDiscover(t *testing.T) {
	shows(t, "caching.ttl.positive")
	bubble(t, func(t *testing.T) {
		s, tr := script(t, func(m Message) []string {
			return []string{resultOf(m, strings.Replace(discovered, `"ttlMs":0`, `"ttlMs":1000`, 1))}
		})
		cs, err := dial(t, ClientOptions{}, tr)
		if err != nil {
			t.Fatal(err)
		}
		if err := cs.Call(t.Context(), methodDiscover, nil, nil); err != nil || len(s.received()) != 1 {
			t.Errorf("%v, %s", err, s.methods())
		}
		if err := cs.Ping(t.Context()); err != nil || len(s.received()) != 2 {
			t.Errorf("%v, %s", err, s.methods())
		}
	})
}

// A notification makes stale what it is about, unasked or by a subscription,
// also when the answer was still on its way.
func TestClientCacheInvalidated(t *testing.T) {
	shows(t, "caching.invalidate")
	reads := map[string][2]string{
		"tools": {methodToolsList, ""}, "prompts": {methodPromptsList, ""}, "resources": {methodResourcesList, ""}, "templates": {methodTemplatesList, ""},
		"x:y": {methodResourcesRead, `{"uri":"x:y"}`}, "x:y/z": {methodResourcesRead, `{"uri":"x:y/z"}`}, "x:yz": {methodResourcesRead, `{"uri":"x:yz"}`},
	}
	for _, c := range []struct{ note, params, stale string }{
		{notifyToolsChanged, `{}`, " tools "}, {notifyPromptsChanged, `{}`, " prompts "}, {notifyResourcesChanged, `{}`, " resources templates "},
		{notifyResourceUpdated, `{"uri":"x:y"}`, " x:y "}, {notifyResourceUpdated, `{"uri":"x:y/z"}`, " x:y x:y/z "}, {notifyResourceUpdated, `{"uri":"x"}`, " "},
		{notifyToolsChanged, `{"_meta":{"io.modelcontextprotocol/subscriptionId":"listen-1"}}`, " tools "}, {"notifications/message", `{"level":"info","data":1}`, " "},
	} {
		t.Run(c.note+c.params, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				cs, s := connected(t, Version20260728, ClientOptions{}, numbered(`,"ttlMs":60000`))
				before := map[string]string{}
				for name, call := range reads {
					before[name] = asks(t, cs, call[0], call[1])
				}
				s.send(`{"jsonrpc":"2.0","method":"` + c.note + `","params":` + c.params + `}`)
				synctest.Wait()
				for name, call := range reads {
					stale := asks(t, cs, call[0], call[1]) != before[name]
					if stale != strings.Contains(c.stale, " "+name+" ") {
						t.Errorf("%s stale: %v", name, stale)
					}
				}
			})
		})
	}
	bubble(t, func(t *testing.T) {
		next := numbered(`,"ttlMs":60000`)
		cs, _ := connected(t, Version20260728, ClientOptions{}, func(m Message) []string {
			return append([]string{`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`}, next(m)...)
		})
		if n := asks(t, cs, methodToolsList, ""); asks(t, cs, methodToolsList, "") == n {
			t.Error("an answer that was on its way when the list changed is kept")
		}
	})
}

// paged is a server with three pages, of which each has its own time to live.
func paged(invalid *string) react {
	return func(m Message) []string {
		cursor, _ := stringValue(rawMember(m.Params, "cursor"))
		if cursor != "" && cursor == *invalid {
			*invalid = ""
			return []string{errorOf(m, CodeInvalidParams)}
		}
		tool := func(names string, rest string) []string {
			var tools []string
			for _, name := range strings.Fields(names) {
				tools = append(tools, `{"name":"`+name+`","inputSchema":{"type":"object"}}`)
			}
			return []string{resultOf(m, `{"resultType":"complete","tools":[`+strings.Join(tools, ",")+`]`+rest+`}`)}
		}
		switch cursor {
		case "2":
			return tool("c d", `,"nextCursor":"3","ttlMs":1000`)
		case "3":
			return tool("e", `,"ttlMs":60000`)
		}
		return tool("a b", `,"nextCursor":"2","ttlMs":60000`)
	}
}

// Each page is kept by itself; an expired one is asked for by its cursor; a
// cursor that the server no longer knows makes all pages stale.
func TestClientCachePages(t *testing.T) {
	shows(t, "caching.page.own-ttl", "caching.page.refetch", "caching.page.invalid-cursor", "caching.page.snapshot")
	bubble(t, func(t *testing.T) {
		invalid := ""
		cs, s := connected(t, Version20260728, ClientOptions{}, paged(&invalid))
		for _, c := range []struct {
			name    string
			prepare func()
			opts    CallOptions
			cursors string
		}{
			{"at first", func() {}, CallOptions{}, `- "2" "3"`},
			{"all kept", func() {}, CallOptions{}, ""},
			{"the second has expired", func() { time.Sleep(time.Second) }, CallOptions{}, `"2"`},
			{"a snapshot", func() {}, CallOptions{Fresh: true}, `- "2" "3"`},
			{"the cursor is void", func() { time.Sleep(time.Second); invalid = "2" }, CallOptions{}, `"2" - "2" "3"`},
			{"kept again", func() {}, CallOptions{}, ""},
			{"another is void", func() { time.Sleep(time.Hour); invalid = "3" }, CallOptions{}, `- "2" "3" - "2" "3"`},
		} {
			c.prepare()
			before := len(s.of(methodToolsList))
			var names, cursors []string
			for tool, err := range cs.With(c.opts).Tools(t.Context()) {
				if err != nil {
					t.Fatalf("%s: %v", c.name, err)
				}
				names = append(names, tool.Name)
			}
			for _, m := range s.of(methodToolsList)[before:] {
				cursor := string(rawMember(m.Params, "cursor"))
				if cursor == "" {
					cursor = "-"
				}
				cursors = append(cursors, cursor)
			}
			if got := strings.Join(names, " "); got != "a b c d e" {
				t.Errorf("%s: tools %s", c.name, got)
			}
			if got := strings.Join(cursors, " "); got != c.cursors {
				t.Errorf("%s: asked for %s, want %s", c.name, got, c.cursors)
			}
		}
	})
	// a server that never accepts its own cursor is asked once more, not for ever
	bubble(t, func(t *testing.T) {
		cs, s := connected(t, Version20260728, ClientOptions{}, func(m Message) []string {
			if rawMember(m.Params, "cursor") != nil {
				return []string{errorOf(m, CodeInvalidParams)}
			}
			return []string{resultOf(m, `{"resultType":"complete","tools":[{"name":"a","inputSchema":{"type":"object"}}],"nextCursor":"2"}`)}
		})
		got := ""
		for tool, err := range cs.Tools(t.Context()) {
			if err != nil {
				got += " error"
				break
			}
			got += tool.Name
		}
		if n := len(s.of(methodToolsList)); got != "a error" || n != 4 {
			t.Errorf("%s, %d requests", got, n)
		}
	})
}

// The cache is bounded in bytes and in results; who was used longest ago goes.
// What a caller gets is the caller's.
func TestClientCacheBounds(t *testing.T) {
	shows(t, "caching.key")
	bubble(t, func(t *testing.T) {
		read := func(cs *ClientSession, i int) { asks(t, cs, methodResourcesRead, fmt.Sprintf(`{"uri":"x:%d"}`, i)) }
		cs, s := connected(t, Version20260728, ClientOptions{CacheSize: 2000}, numbered(`,"ttlMs":60000`))
		for i := range 50 {
			read(cs, 0)
			read(cs, i)
		}
		if c := &cs.link.cache; c.size > 2000 || len(c.entries) != c.order.Len() || len(c.entries) < 2 {
			t.Errorf("%d bytes in %d of %d", c.size, len(c.entries), c.order.Len())
		}
		if n := len(s.of(methodResourcesRead)); n != 50 {
			t.Errorf("what is used all the time was asked for again: %d", n)
		}
		cs, _ = connected(t, Version20260728, ClientOptions{}, numbered(`,"ttlMs":60000`))
		for i := range maxCached + 10 {
			read(cs, i)
		}
		if n := len(cs.link.cache.entries); n != maxCached {
			t.Errorf("%d results", n)
		}
		cs, _ = connected(t, Version20260728, ClientOptions{CacheSize: 100}, numbered(`,"ttlMs":60000`))
		read(cs, 1)
		if n := len(cs.link.cache.entries); n != 0 {
			t.Errorf("%d results that do not fit", n)
		}
	})
	bubble(t, func(t *testing.T) {
		cs, _ := connected(t, Version20260728, ClientOptions{}, numbered(`,"ttlMs":60000`))
		for range 3 {
			var raw json.RawMessage
			if err := cs.Call(t.Context(), methodToolsList, nil, &raw); err != nil || string(rawMember(raw, "n")) != "1" {
				t.Fatalf("%s, %v", raw, err)
			}
			copy(raw, strings.Repeat(" ", len(raw)))
			for tool, err := range cs.Tools(t.Context()) {
				if err != nil || string(tool.InputSchema) != `{"type":"object"}` {
					t.Fatalf("%+v, %v", tool, err)
				}
				copy(tool.InputSchema, "overwritten!")
			}
		}
	})
}

// Two eras, many callers, changes all the time.
func TestClientCacheTumult(t *testing.T) {
	shows(t, "caching.invalidate")
	leakCheck(t)
	s := testServer(nil)
	s.opts.Cache = CacheHints{TTLMs: 60000, CacheScope: "private"}
	ct, st := InMemory()
	if _, err := s.Connect(context.Background(), st); err != nil {
		t.Fatal(err)
	}
	cs, err := NewClient(Implementation{Name: "c", Version: "1"}, nil).Connect(context.Background(), ct)
	if err != nil {
		t.Fatal(err)
	}
	defer cs.Close()
	done := make(chan error, 8)
	for range cap(done) {
		go func() {
			for range 50 {
				for _, err := range cs.Tools(context.Background()) {
					if err != nil {
						done <- err
						return
					}
				}
				cs.link.changed(Change{Method: notifyToolsChanged})
			}
			done <- nil
		}()
	}
	for range cap(done) {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}
