//go:build go1.25

package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
)

// A recorder is middleware that notes what it sees.
type recorder struct {
	mu   sync.Mutex
	seen []string
}

func (r *recorder) wrap(next Handler) Handler {
	return func(ctx context.Context, req *Request) (any, error) {
		way := "<"
		if req.Outgoing {
			way = ">"
		}
		kind := "notification "
		if !req.ID.IsZero() {
			kind = ""
		}
		result, err := next(ctx, req)
		if req.Outgoing && !req.ID.IsZero() && err == nil {
			if _, ok := result.(json.RawMessage); !ok {
				kind = fmt.Sprintf("%T ", result)
			}
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.seen = append(r.seen, way+kind+req.Method+strings.TrimRight(" "+req.Name, " "))
		return result, err
	}
}

func (r *recorder) saw() string {
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.seen, ", ")
}

// using connects a client with middleware to a scripted server.
func using(t *testing.T, version string, opts ClientOptions, next react, middleware ...Middleware) (*ClientSession, *scripted) {
	t.Helper()
	answer := modern(next)
	if version != Version20260728 {
		answer = legacy(version, next)
	}
	s, tr := script(t, answer)
	opts.Versions = []string{version}
	c := NewClient(Implementation{Name: "c", Version: "1"}, &opts)
	c.Use(middleware...)
	cs, err := c.Connect(t.Context(), tr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cs.Close() })
	return cs, s
}

// Middleware of a client sees everything both sides send, the questions of a
// modern server as if they were requests.
func TestClientUseSeesAll(t *testing.T) {
	shows(t, "base.jsonrpc.conform", "mrtr.client.new-id", "mrtr.client.keys")
	const question = `"method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object","properties":{}}}`
	want := map[string]string{
		Version20251125: ">initialize, >notification notifications/initialized, <elicitation/create, <notification notifications/tools/list_changed, " +
			">tools/call t, >notification notifications/x",
		Version20260728: ">server/discover, <notification notifications/tools/list_changed, >tools/call t, <elicitation/create, >tools/call t, >notification notifications/x",
	}
	eachEra(t, func(t *testing.T, version string) {
		var rec recorder
		opts := ClientOptions{Elicit: func(context.Context, *ElicitParams) (*ElicitResult, error) {
			return &ElicitResult{Action: "accept", Content: json.RawMessage(`{}`)}, nil
		}}
		const changed = `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`
		var call Message
		cs, s := using(t, version, opts, func(m Message) []string {
			switch {
			case m.Method == "response":
				return []string{changed, resultOf(call, `{"content":[]}`)}
			case m.Method != methodToolsCall:
				return nil
			case version == Version20251125:
				call = m
				return []string{`{"jsonrpc":"2.0","id":"q",` + question + `}`}
			case rawMember(m.Params, "inputResponses") == nil:
				return []string{changed, resultOf(m, `{"resultType":"input_required","inputRequests":{"k":{`+question+`}}}`)}
			}
			return []string{resultOf(m, `{"content":[]}`)}
		}, rec.wrap)
		if _, err := cs.CallTool(t.Context(), "t", nil); err != nil {
			t.Fatal(err)
		}
		rec.saw()
		if err := cs.Notify(t.Context(), "notifications/x", nil); err != nil {
			t.Fatal(err)
		}
		s.received()
		got, missing := rec.saw(), ""
		for _, entry := range strings.Split(want[version], ", ") {
			if !strings.Contains(got, entry) {
				missing = entry
			}
		}
		if missing != "" || len(got) != len(want[version]) {
			t.Errorf("saw  %s\nwant %s", got, want[version])
		}
	})
}

// Middleware may rewrite, refuse, answer and try again; what the protocol has
// in _meta is added after it.
func TestClientUseActs(t *testing.T) {
	shows(t, "meta.request.required", "base.id.unique-session")
	failed := errors.New("not today")
	eachEra(t, func(t *testing.T, version string) {
		act := func(next Handler) Handler {
			return func(ctx context.Context, req *Request) (any, error) {
				if meta := req.Meta(); meta[metaClientInfo] != nil || meta[metaProgressToken] != nil {
					t.Errorf("%s: sees the protocol's _meta: %v", req.Method, meta)
				}
				switch req.Method {
				case "x/rewrite":
					req.Params = json.RawMessage(`{"a":2,"_meta":{"own":1,"io.modelcontextprotocol/clientInfo":7}}`)
				case "x/broken":
					req.Params = json.RawMessage(`[]`)
				case "x/refuse":
					return nil, failed
				case "x/panic":
					panic("oh")
				case "x/answer":
					return map[string]any{"resultType": "complete", "n": 1}, nil
				case "x/nothing":
					return nil, nil
				case "x/unsayable":
					return func() {}, nil
				case "x/twice":
					if _, err := next(ctx, req); err != nil {
						return nil, err
					}
				}
				return next(ctx, req)
			}
		}
		cs, s := using(t, version, ClientOptions{}, each(`{"sent":true}`), act)
		opts := CallOptions{Progress: func(ProgressParams) {}, Meta: Meta{"mine": json.RawMessage(`1`)}}
		for _, c := range []struct {
			method string
			result string // "" for an error
			sent   int
		}{
			{"x/rewrite", `{"sent":true}`, 1}, {"x/broken", "", 0}, {"x/refuse", "", 0}, {"x/panic", "", 0}, {"x/unsayable", "", 0},
			{"x/answer", `{"resultType":"complete","n":1}`, 0}, {"x/nothing", `{}`, 0}, {"x/twice", `{"sent":true}`, 2},
		} {
			var raw json.RawMessage
			err := cs.With(opts).Call(t.Context(), c.method, map[string]int{"a": 1}, &raw)
			if (err != nil) != (c.result == "") || isPeers(err) || len(s.of(c.method)) != c.sent {
				t.Errorf("%s: %s, %v, %d sent", c.method, raw, err, len(s.of(c.method)))
			} else if err == nil {
				wantJSON(t, string(raw), c.result)
			}
			if c.method == "x/refuse" && !errors.Is(err, failed) {
				t.Errorf("refused with %v", err)
			}
		}
		m := s.of("x/rewrite")[0]
		if string(rawMember(m.Params, "a")) != "2" || string(rawMember(rawMember(m.Params, "_meta"), "own")) != "1" || rawMember(rawMember(m.Params, "_meta"), "progressToken") == nil {
			t.Errorf("sent %s", m.Params)
		}
		if info := string(rawMember(rawMember(m.Params, "_meta"), metaClientInfo)); version == Version20260728 && info != `{"name":"c","version":"1"}` {
			t.Errorf("who asks: %s", info)
		}
		ids := map[ID]bool{}
		for _, m := range s.received() {
			if m.IsRequest() && ids[m.ID] {
				t.Errorf("the id %s is used twice", m.ID)
			}
			ids[m.ID] = true
		}
	})
}

// A client's middleware may answer and refuse what the server asks, and keep
// notifications from the callbacks.
func TestClientUseIncoming(t *testing.T) {
	shows(t, "roots.error.internal", "base.notif.no-id")
	bubble(t, func(t *testing.T) {
		heard := 0
		opts := ClientOptions{
			Roots:  func(context.Context) ([]Root, error) { return []Root{{URI: "file:///a"}}, nil },
			Notify: func(context.Context, string, json.RawMessage) { heard++ },
		}
		act := func(next Handler) Handler {
			return func(ctx context.Context, req *Request) (any, error) {
				if req.Outgoing {
					return next(ctx, req)
				}
				switch req.ID {
				case StringID("answer"):
					return &ListRootsResult{Roots: []Root{{URI: "file:///b"}}}, nil
				case StringID("refuse"):
					return nil, errors.New("secret")
				case ID{}:
					return nil, nil
				}
				return next(ctx, req)
			}
		}
		_, s := using(t, Version20251125, opts, silent, act)
		for _, id := range []string{"pass", "answer", "refuse"} {
			s.send(`{"jsonrpc":"2.0","id":"` + id + `","method":"roots/list"}`)
		}
		s.send(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
		got := map[string]string{}
		for _, m := range s.of("response") {
			got[m.ID.String()] = string(m.Result)
			if m.Error != nil {
				got[m.ID.String()] = m.Error.Error()
			}
		}
		want := map[string]string{`"pass"`: `{"roots":[{"uri":"file:///a"}]}`, `"answer"`: `{"roots":[{"uri":"file:///b"}]}`,
			`"refuse"`: Errorf(CodeInternalError, "internal error").Error()}
		if !reflect.DeepEqual(got, want) || heard != 0 {
			t.Errorf("answered %v, heard %d", got, heard)
		}
	})
}

// What cannot be sent, and a result that has nowhere to go.
func TestClientSaysWhatIsWrong(t *testing.T) {
	shows(t, "base.jsonrpc.conform")
	eachEra(t, func(t *testing.T, version string) {
		cs, s := connected(t, version, ClientOptions{}, each(`{}`))
		before := len(s.received())
		var none *CallToolResult
		for _, result := range []any{CallToolResult{}, none, 7, map[string]any{}} {
			if err := cs.Call(t.Context(), "x/y", nil, result); err == nil || !strings.Contains(err.Error(), "pointer") {
				t.Errorf("%T: %v", result, err)
			}
		}
		if err := cs.Call(t.Context(), "", nil, nil); err == nil {
			t.Error("a request without a method")
		}
		if err := cs.Notify(t.Context(), "", nil); err == nil {
			t.Error("a notification without a method")
		}
		if got := len(s.received()); got != before {
			t.Errorf("%d messages were sent", got-before)
		}
	})
}
