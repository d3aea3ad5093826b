//go:build go1.25

package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A react says what a scripted server sends when a message comes in.
type react func(m Message) []string

// A scripted server is the other end of a client's connection: it keeps what
// the client sends and answers by script.
type scripted struct {
	t    *testing.T
	conn Conn
	mu   sync.Mutex
	got  []Message
	raw  []string
}

// script starts a scripted server; the returned transport leads to it.
func script(t *testing.T, answer react) (*scripted, Transport) {
	client, server := InMemory()
	conn, err := server.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s := &scripted{t: t, conn: conn}
	t.Cleanup(func() { conn.Close() })
	go s.run(answer)
	return s, client
}

func (s *scripted) run(answer react) {
	for {
		frame, err := s.conn.Read(context.Background())
		if err != nil {
			return
		}
		checkFrame(s.t, string(frame))
		m, isResponse, bad := decodeMessage(frame)
		if bad != nil {
			m.Method = "invalid: " + bad.Message
		} else if isResponse {
			m.Method = "response"
		}
		s.mu.Lock()
		s.got, s.raw = append(s.got, m), append(s.raw, string(frame))
		s.mu.Unlock()
		if answer != nil {
			s.send(answer(m)...)
		}
	}
}

func (s *scripted) send(frames ...string) {
	for _, frame := range frames {
		if frame == "EOF" {
			s.conn.Close()
			return
		}
		s.conn.Write(context.Background(), []byte(frame))
	}
}

// received returns the messages that came in, once all is quiet.
func (s *scripted) received() []Message {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.got)
}

// methods returns the methods that came in, in order.
func (s *scripted) methods() string {
	var names []string
	for _, m := range s.received() {
		names = append(names, m.Method)
	}
	return strings.Join(names, " ")
}

// of returns the messages of one method.
func (s *scripted) of(method string) (found []Message) {
	for _, m := range s.received() {
		if m.Method == method {
			found = append(found, m)
		}
	}
	return found
}

func resultOf(m Message, body string) string {
	return `{"jsonrpc":"2.0","id":` + m.ID.String() + `,"result":` + body + `}`
}

func errorOf(m Message, code int) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":"refused"}}`, m.ID, code)
}

const declaresAll = `{"tools":{"listChanged":true},"prompts":{"listChanged":true},"resources":{"listChanged":true,"subscribe":true},"completions":{},"logging":{}}`

const discovered = `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":` + declaresAll + `,"ttlMs":0,"cacheScope":"private","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}}}`

func initializedAs(version string) string {
	return `{"protocolVersion":"` + version + `","capabilities":` + declaresAll + `,"serverInfo":{"name":"s","version":"1"}}`
}

// modern is a server of 2026-07-28 that answers the rest by next.
func modern(next react) react {
	return func(m Message) []string {
		if m.Method == methodDiscover {
			return []string{resultOf(m, discovered)}
		}
		return next(m)
	}
}

// legacy is a server of an older version that answers the rest by next.
func legacy(version string, next react) react {
	return func(m Message) []string {
		switch {
		case m.Method == methodDiscover:
			return []string{errorOf(m, CodeMethodNotFound)}
		case m.Method == methodInitialize:
			return []string{resultOf(m, initializedAs(version))}
		case m.Method == notifyInitialized:
			return nil
		}
		return next(m)
	}
}

// each answers every request with the same result.
func each(body string) react {
	return func(m Message) []string {
		if !m.IsRequest() {
			return nil
		}
		return []string{resultOf(m, body)}
	}
}

func silent(Message) []string { return nil }

func dial(t *testing.T, opts ClientOptions, tr Transport) (*ClientSession, error) {
	cs, err := NewClient(Implementation{Name: "c", Version: "1"}, &opts).Connect(t.Context(), tr)
	if cs != nil {
		t.Cleanup(func() { cs.Close() })
	}
	return cs, err
}

// connected connects to a scripted server of a version that answers by next.
func connected(t *testing.T, version string, opts ClientOptions, next react) (*ClientSession, *scripted) {
	t.Helper()
	answer := modern(next)
	if version != Version20260728 {
		answer = legacy(version, next)
	}
	s, tr := script(t, answer)
	opts.Versions = []string{version}
	cs, err := dial(t, opts, tr)
	if err != nil {
		t.Fatal(err)
	}
	return cs, s
}

// bubble runs f on virtual time and checks that nothing is left.
func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	leakCheck(t)
	synctest.Test(t, f)
}

// eachEra runs f for the newest version of both eras.
func eachEra(t *testing.T, f func(t *testing.T, version string)) {
	for _, version := range []string{Version20251125, Version20260728} {
		t.Run(version, func(t *testing.T) { bubble(t, func(t *testing.T) { f(t, version) }) })
	}
}

// isPeers reports whether err is an answer of the peer.
func isPeers(err error) bool {
	var e *Error
	return errors.As(err, &e)
}

func wantJSON(t *testing.T, got, want string) {
	t.Helper()
	var g, w any
	if err := json.Unmarshal([]byte(got), &g); err != nil {
		t.Fatalf("%v: %s", err, got)
	}
	if err := json.Unmarshal([]byte(want), &w); err != nil {
		t.Fatalf("%v: %s", err, want)
	}
	gotText, _ := json.Marshal(g)
	wantText, _ := json.Marshal(w)
	if string(gotText) != string(wantText) {
		t.Errorf("got  %s\nwant %s", gotText, wantText)
	}
}

// Whatever is no answer of 2026-07-28 makes the client turn to initialize, on
// the connection there is.
func TestClientFallsBack(t *testing.T) {
	shows(t, "stdio.compat.probe", "stdio.compat.fallback-error", "stdio.compat.fallback-timeout", "stdio.compat.no-specific-code",
		"lifecycle.init.initialized", "lifecycle.init.client-early", "version.era.cache")
	answers := map[string]react{
		"silence":    silent,
		"slow start": func(m Message) []string { time.Sleep(8 * time.Second); return []string{errorOf(m, -32601)} },
		"late answer": func(m Message) []string {
			time.Sleep(6 * time.Second)
			return []string{resultOf(m, discovered)}
		},
		"both result and error": func(m Message) []string {
			return []string{`{"jsonrpc":"2.0","id":` + m.ID.String() + `,"result":` + discovered + `,"error":{"code":1,"message":"x"}}`}
		},
		"no jsonrpc":     func(m Message) []string { return []string{`{"id":` + m.ID.String() + `,"result":` + discovered + `}`} },
		"error a string": func(m Message) []string { return []string{`{"jsonrpc":"2.0","id":` + m.ID.String() + `,"error":"x"}`} },
		"error without id, then silence": func(Message) []string {
			return []string{`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"x"}}`, `{oops`, ``, `42`}
		},
	}
	for _, code := range []int{-32700, -32600, -32601, -32602, -32603, -32000, -32002, -1, 0, 1, 404} {
		answers[fmt.Sprint("code ", code)] = func(m Message) []string { return []string{errorOf(m, code)} }
	}
	for _, body := range []string{`{}`, `[]`, `null`, `"x"`, `7`, `{"supportedVersions":[]}`, `{"supportedVersions":"2026-07-28"}`, `{"supportedVersions":null}`, `{"supportedVersions":[7]}`} {
		answers["result "+body] = func(m Message) []string { return []string{resultOf(m, body)} }
	}
	for name, answer := range answers {
		t.Run(name, func(t *testing.T) { bubble(t, func(t *testing.T) { fallsBack(t, answer) }) })
	}
}

func fallsBack(t *testing.T, answer react) {
	began := time.Now()
	s, tr := script(t, func(m Message) []string {
		if m.Method == methodDiscover {
			return answer(m)
		}
		return legacy(Version20250618, each(`{"tools":[]}`))(m)
	})
	cs, err := dial(t, ClientOptions{}, tr)
	if err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > 8*time.Second {
		t.Errorf("took %v", took)
	}
	if got := cs.Server().ProtocolVersion; got != Version20250618 {
		t.Errorf("version %s", got)
	}
	for range 2 {
		if err := cs.Call(t.Context(), methodToolsList, nil, nil); err != nil {
			t.Error(err)
		}
	}
	if got := s.methods(); got != "server/discover initialize notifications/initialized tools/list tools/list" {
		t.Errorf("sent %s", got)
	}
}

func TestClientStaysModern(t *testing.T) {
	shows(t, "version.era.modern-error", "version.client-retry", "errors.local.distinct", "stdio.compat.discover-result")
	for _, c := range []struct {
		name   string
		answer func(m Message) string
		code   int
	}{
		{"-32022", func(m Message) string { return errorOf(m, -32022) }, -32022},
		{"-32021", func(m Message) string { return errorOf(m, -32021) }, -32021},
		{"-32020", func(m Message) string { return errorOf(m, -32020) }, -32020},
		{"no common version", func(m Message) string {
			return resultOf(m, `{"resultType":"complete","supportedVersions":["2031-01-01"],"capabilities":{}}`)
		}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s, tr := script(t, func(m Message) []string { return []string{c.answer(m)} })
				_, err := dial(t, ClientOptions{}, tr)
				var e *Error
				if err == nil || errors.As(err, &e) != (c.code != 0) || c.code != 0 && e.Code != c.code {
					t.Errorf("error %v", err)
				}
				if c.code == 0 && !strings.Contains(err.Error(), "2031-01-01") {
					t.Errorf("the error does not say what there is: %v", err)
				}
				if got := s.methods(); got != "server/discover" {
					t.Errorf("sent %s", got)
				}
				if _, err := s.conn.Read(t.Context()); err == nil {
					t.Error("the connection is still open")
				}
			})
		})
	}
}

// A server that knows of 2026-07-28 and lists only earlier revisions, as the
// official Go SDK does where it keeps sessions.
func TestClientNamesOld(t *testing.T) {
	shows(t, "discover.client.choose", "version.client-retry")
	for name, refusal := range map[string]func(Message) string{
		"discovered": func(m Message) string {
			return resultOf(m, `{"resultType":"complete","supportedVersions":["2025-11-25","2025-06-18"],"capabilities":{}}`)
		},
		"-32022": func(m Message) string {
			return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32022,"message":"no","data":{"supported":["2025-06-18"],"requested":"2026-07-28"}}}`, m.ID)
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s, tr := script(t, func(m Message) []string {
					if m.Method == methodDiscover {
						return []string{refusal(m)}
					}
					return legacy(Version20250618, each(`{"tools":[]}`))(m)
				})
				cs, err := dial(t, ClientOptions{}, tr)
				if err != nil {
					t.Fatal(err)
				}
				if got := cs.Server().ProtocolVersion; got != Version20250618 {
					t.Errorf("version %s", got)
				}
				synctest.Wait()
				if got := s.methods(); got != "server/discover initialize notifications/initialized" {
					t.Errorf("sent %s", got)
				}
			})
		})
	}
}

// Exactly what a modern client sends.
func TestClientModernFrames(t *testing.T) {
	shows(t, "stdio.compat.discover-result", "meta.request.required", "meta.request.client-info", "base.jsonrpc.conform", "elicit.caps.modern",
		"sampling.caps.modern", "roots.caps.modern", "patterns.client-notifications", "version.modern-only.probe", "elicit.caps.one-mode")
	bubble(t, func(t *testing.T) {
		s, tr := script(t, modern(each(`{"resultType":"complete","tools":[]}`)))
		cs, err := dial(t, answering(), tr)
		if err != nil {
			t.Fatal(err)
		}
		mine := Meta{"a": json.RawMessage(`{"n":9007199254740993}`), "b": json.RawMessage(`1`)}
		params := json.RawMessage(`{"cursor":"c","_meta":{"b":2,"c":3,"io.modelcontextprotocol/clientInfo":7,"io.modelcontextprotocol/protocolVersion":"x"}}`)
		if err := cs.With(CallOptions{Meta: mine, Progress: func(ProgressParams) {}}).Call(t.Context(), methodToolsList, params, nil); err != nil {
			t.Fatal(err)
		}
		if len(mine) != 2 || string(mine["b"]) != `1` {
			t.Errorf("the caller's map changed: %v", mine)
		}
		if err := cs.RootsChanged(t.Context()); err != nil {
			t.Error(err)
		}
		const who = `"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},
			"io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}},"sampling":{},"roots":{}}`
		synctest.Wait()
		if len(s.raw) != 2 {
			t.Fatalf("sent %q", s.raw)
		}
		wantJSON(t, s.raw[0], `{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{`+who+`}}}`)
		wantJSON(t, s.raw[1], `{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{"cursor":"c","_meta":{"a":{"n":9007199254740993},"b":1,"c":3,"progressToken":2,`+who+`}}}`)
		if !strings.Contains(s.raw[1], "9007199254740993") {
			t.Error("digits were lost")
		}
	})
}

// Exactly how a legacy session opens, and which version it then speaks.
func TestClientLegacyFrames(t *testing.T) {
	shows(t, "lifecycle.init.first", "lifecycle.init.request", "lifecycle.init.initialized", "lifecycle.version.client-latest", "lifecycle.version.client-supported",
		"elicit.caps", "sampling.caps", "roots.caps", "roots.list-changed", "base.notif.no-id")
	bubble(t, func(t *testing.T) {
		opts := answering()
		cs, s := connected(t, Version20251125, opts, silent)
		if err := cs.RootsChanged(t.Context()); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if len(s.raw) != 3 {
			t.Fatalf("sent %q", s.raw)
		}
		wantJSON(t, s.raw[0], `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","clientInfo":{"name":"c","version":"1"},
			"capabilities":{"elicitation":{"form":{}},"sampling":{},"roots":{"listChanged":true}}}}`)
		wantJSON(t, s.raw[1], `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		wantJSON(t, s.raw[2], `{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`)
	})
}

func TestClientPinned(t *testing.T) {
	shows(t, "version.modern-only.probe", "lifecycle.version.client-supported", "lifecycle.op.version")
	for _, c := range []struct {
		versions []string
		answer   react
		sent     string
		asked    string // in initialize
		fails    bool
	}{
		{[]string{Version20260728}, legacy(Version20251125, silent), "server/discover", "", true},
		{[]string{Version20260728}, silent, "server/discover", "", true},
		{[]string{Version20251125, Version20241105}, legacy(Version20241105, silent), "initialize notifications/initialized", Version20251125, false},
		{[]string{Version20250326}, modern(each(initializedAs(Version20250326))), "initialize notifications/initialized", Version20250326, false},
		{[]string{Version20250326, Version20260728}, legacy(Version20250326, silent), "server/discover initialize notifications/initialized", Version20250326, false},
	} {
		t.Run(strings.Join(c.versions, "+"), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s, tr := script(t, c.answer)
				_, err := dial(t, ClientOptions{Versions: c.versions}, tr)
				if (err != nil) != c.fails {
					t.Errorf("error %v", err)
				}
				if got := s.methods(); got != c.sent {
					t.Errorf("sent %s", got)
				}
				for _, m := range s.of(methodInitialize) {
					var p InitializeParams
					if err := decodeAt(m.Params, &p, revLegacy, true); err != nil || p.ProtocolVersion != c.asked {
						t.Errorf("asked for %q, %v", p.ProtocolVersion, err)
					}
				}
			})
		})
	}
}

// What the client makes of the answer to initialize.
func TestClientInitializeRefused(t *testing.T) {
	shows(t, "lifecycle.version.client-disconnect", "lifecycle.version.error-tolerated", "lifecycle.errors", "lifecycle.errors-2024")
	failing := map[string]string{
		"unknown version":  `"result":` + initializedAs("2099-01-01"),
		"modern version":   `"result":` + initializedAs(Version20260728),
		"version not mine": `"result":` + initializedAs(Version20241105),
		"empty version":    `"result":` + initializedAs(""),
		"version a number": `"result":{"protocolVersion":7,"capabilities":{},"serverInfo":{"name":"s","version":"1"}}`,
		"no version":       `"result":{"capabilities":{},"serverInfo":{"name":"s","version":"1"}}`,
		"null":             `"result":null`,
		"array":            `"result":[]`,
		"-32602":           `"error":{"code":-32602,"message":"Unsupported protocol version","data":{"supported":["2024-11-05"],"requested":"2025-11-25"}}`,
		"-32603":           `"error":{"code":-32603,"message":"no"}`,
		"broken error":     `"error":7`,
	}
	for name, rest := range failing {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s, tr := script(t, func(m Message) []string {
					if m.Method == methodInitialize {
						return []string{`{"jsonrpc":"2.0","id":` + m.ID.String() + `,` + rest + `}`}
					}
					return []string{errorOf(m, -32601)}
				})
				_, err := dial(t, ClientOptions{Versions: []string{Version20250618, Version20251125, Version20260728}}, tr)
				if err == nil || isPeers(err) != strings.HasPrefix(name, "-") {
					t.Errorf("error %v", err)
				}
				if got := s.methods(); got != "server/discover initialize" {
					t.Errorf("sent %s", got)
				}
				if _, err := s.conn.Read(t.Context()); !errors.Is(err, io.EOF) {
					t.Errorf("the connection is still open: %v", err)
				}
			})
		})
	}
	t.Run("silence", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			s, tr := script(t, silent)
			_, err := dial(t, ClientOptions{}, tr)
			if !errors.Is(err, context.DeadlineExceeded) || isPeers(err) {
				t.Errorf("error %v", err)
			}
			if got := s.methods(); got != "server/discover initialize" { // and no cancellation
				t.Errorf("sent %s", got)
			}
		})
	})
}

// A redial is a transport with one connection after the other.
type redial struct {
	left  []Transport
	calls int
}

func (r *redial) Connect(ctx context.Context) (Conn, error) {
	r.calls++
	if len(r.left) == 0 {
		return nil, errors.New("no more connections")
	}
	next := r.left[0]
	r.left = r.left[1:]
	return next.Connect(ctx)
}

// A server that dies of the probe is started once more, and only once.
func TestClientStartsAgain(t *testing.T) {
	shows(t, "stdio.compat.fallback-error", "lifecycle.errors")
	diesAtOnce := func(Message) []string { return []string{"EOF"} }
	refusesAndDies := func(m Message) []string { return []string{errorOf(m, -32601), "EOF"} }
	old := legacy(Version20241105, each(`{}`))
	diesLater := func(m Message) []string {
		if m.Method == methodInitialize {
			return []string{"EOF"}
		}
		return silent(m)
	}
	const whole = "initialize notifications/initialized"
	for _, c := range []struct {
		name   string
		script []react
		sent   []string
		fails  bool
	}{
		{"dies", []react{diesAtOnce, old, old}, []string{"server/discover", whole, ""}, false},
		{"refuses, then dies", []react{refusesAndDies, old, old}, []string{"server/discover", whole, ""}, false},
		{"is silent, then dies", []react{diesLater, old, old}, []string{"server/discover initialize", whole, ""}, false},
		{"dies twice", []react{diesAtOnce, diesAtOnce, old}, []string{"server/discover", "initialize", ""}, true},
		{"no second", []react{diesAtOnce}, []string{"server/discover"}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				again, servers := &redial{}, []*scripted{}
				for _, answer := range c.script {
					s, tr := script(t, answer)
					again.left, servers = append(again.left, tr), append(servers, s)
				}
				_, err := dial(t, ClientOptions{}, again)
				if (err != nil) != c.fails || c.fails && !errors.Is(err, ErrClosed) {
					t.Errorf("error %v", err)
				}
				if again.calls != 2 {
					t.Errorf("connected %d times", again.calls)
				}
				for i, s := range servers {
					if got := s.methods(); got != c.sent[i] && !(i == 0 && got == c.sent[0]+" initialize") {
						t.Errorf("server %d got %s", i, got)
					}
				}
			})
		})
	}
}

// A deafConn never reads what is written to it, and says nothing.
type deafConn struct {
	gone chan struct{}
	once sync.Once
}

func newDeaf() *deafConn { return &deafConn{gone: make(chan struct{})} }

func (d *deafConn) Connect(context.Context) (Conn, error)       { return d, nil }
func (d *deafConn) Read(context.Context) ([]byte, error)        { <-d.gone; return nil, io.EOF }
func (d *deafConn) Write(_ context.Context, frame []byte) error { <-d.gone; return io.ErrClosedPipe }
func (d *deafConn) Close() error                                { d.once.Do(func() { close(d.gone) }); return nil }

// The caller may give up in every phase of the opening, at once.
func TestClientConnectCancelled(t *testing.T) {
	shows(t, "cancel.initialize", "lifecycle.errors", "errors.local.distinct")
	slow := func(m Message) []string {
		if m.Method == methodInitialize {
			return nil
		}
		return []string{errorOf(m, -32601)}
	}
	for _, c := range []struct {
		name   string
		answer react
		sent   string
	}{
		{"while asked for 2026-07-28", silent, "server/discover"},
		{"while initialize waits", slow, "server/discover initialize"},
		{"while nobody reads", nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s, tr := &scripted{}, Transport(newDeaf())
				if c.answer != nil {
					s, tr = script(t, c.answer)
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				began := time.Now()
				_, err := NewClient(Implementation{Name: "c", Version: "1"}, nil).Connect(ctx, tr)
				if !errors.Is(err, context.DeadlineExceeded) || isPeers(err) {
					t.Errorf("error %v", err)
				}
				if took := time.Since(began); took > 1100*time.Millisecond {
					t.Errorf("took %v", took)
				}
				if got := s.methods(); got != c.sent {
					t.Errorf("sent %s", got)
				}
			})
		})
	}
	bubble(t, func(t *testing.T) {
		s, tr := script(t, silent)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := NewClient(Implementation{}, nil).Connect(ctx, tr); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
		if got := s.methods(); got != "" {
			t.Errorf("sent %s", got)
		}
	})
}

// What a server may say before it answers initialize does no harm.
func TestClientNoiseBeforeInitialized(t *testing.T) {
	shows(t, "lifecycle.init.ping-early", "lifecycle.init.client-early", "base.notif.no-response", "cancel.invalid")
	bubble(t, func(t *testing.T) {
		s, tr := script(t, nil)
		var logged []string
		opts := ClientOptions{
			Log:    func(_ context.Context, p *LogParams) { logged = append(logged, string(p.Data)) },
			Notify: func(context.Context, string, json.RawMessage) { panic("in a callback") },
		}
		done := make(chan error)
		var cs *ClientSession
		go func() {
			var err error
			cs, err = dial(t, opts, tr)
			done <- err
		}()
		noise := []string{
			`{"jsonrpc":"2.0","id":"p","method":"ping"}`,
			`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}`,
			`{"jsonrpc":"2.0","method":"notifications/message","params":7}`,
			`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}`,
			`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`,
			`{"jsonrpc":"2.0","method":"notifications/cancelled"}`,
			`{"jsonrpc":"2.0","method":"notifications/strange","params":{}}`,
			`{"jsonrpc":"2.0","id":99,"result":{}}`,
		}
		synctest.Wait()
		s.send(noise...)
		s.send(errorOf(s.of(methodDiscover)[0], -32601))
		synctest.Wait()
		s.send(noise...)
		s.send(resultOf(s.of(methodInitialize)[0], initializedAs(Version20251125)))
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if got := len(s.of("response")); got != 2 {
			t.Errorf("%d answers for two pings: %s", got, s.methods())
		}
		if got := len(s.of(notifyInitialized)); got != 1 {
			t.Errorf("%d times initialized", got)
		}
		if got := strings.Join(logged, " "); got != "1 1" {
			t.Errorf("logged %s", got)
		}
		cs.Close()
	})
}

// Ids are integers that no request has had before, also when they are used at
// the same time.
func TestClientIDs(t *testing.T) {
	shows(t, "base.id.type", "base.id.unique-inflight", "base.id.unique-session", "base.id.not-null", "progress.token.unique", "progress.token.type")
	eachEra(t, func(t *testing.T, version string) {
		var waiting []Message
		cs, s := connected(t, version, ClientOptions{}, func(m Message) (out []string) {
			if waiting = append(waiting, m); len(waiting) == 50 { // the last asked is answered first
				for _, m := range slices.Backward(waiting) {
					out = append(out, resultOf(m, `{"content":[{"type":"text","text":"`+m.ID.String()+`"}]}`))
				}
			}
			return out
		})
		var wg sync.WaitGroup
		view := cs.With(CallOptions{Progress: func(ProgressParams) {}})
		for range 50 {
			wg.Add(1)
			go func() {
				defer wg.Done()
				if _, err := view.CallTool(t.Context(), "x", nil); err != nil {
					t.Error(err)
				}
			}()
		}
		wg.Wait()
		seen := map[string]bool{}
		for _, m := range s.received() {
			id := m.ID.String()
			if m.Method == notifyInitialized {
				continue
			}
			if seen[id] || strings.Trim(id, "0123456789") != "" {
				t.Errorf("id %s", id)
			}
			seen[id] = true
			if token := rawMember(rawMember(m.Params, "_meta"), "progressToken"); m.Method == methodToolsCall && string(token) != id {
				t.Errorf("token %s of request %s", token, id)
			}
		}
	})
}

// A call that is given up is cancelled once, at once, and its answer dropped.
func TestClientGivesUp(t *testing.T) {
	shows(t, "cancel.send", "cancel.sender.late", "cancel.target.client", "cancel.target.direction", "cancel.request-id", "cancel.receiver.ignore",
		"timeout.cancel", "timeout.cancel-modern", "timeout.set", "timeout.configurable", "errors.local.distinct")
	eachEra(t, func(t *testing.T, version string) {
		cs, s := connected(t, version, ClientOptions{Timeout: time.Minute}, silent)
		short, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		gone, cancel := context.WithCancel(t.Context())
		go func() { time.Sleep(3 * time.Second); cancel() }()
		for i, c := range []struct {
			ctx  context.Context
			opts CallOptions
			took time.Duration
			want error
		}{
			{short, CallOptions{}, time.Second, context.DeadlineExceeded},
			{gone, CallOptions{}, 2 * time.Second, context.Canceled},
			{t.Context(), CallOptions{}, time.Minute, context.DeadlineExceeded},
			{t.Context(), CallOptions{Timeout: 5 * time.Second}, 5 * time.Second, context.DeadlineExceeded},
			{t.Context(), CallOptions{Timeout: time.Hour}, time.Hour, context.DeadlineExceeded},
			{t.Context(), CallOptions{Timeout: -1, MaxTimeout: 2 * time.Hour}, 2 * time.Hour, context.DeadlineExceeded},
		} {
			began := time.Now()
			err := cs.With(c.opts).Call(c.ctx, methodToolsList, nil, nil)
			if took := time.Since(began); !errors.Is(err, c.want) || isPeers(err) || took != c.took {
				t.Errorf("%d: %v after %v", i, err, took)
			}
			asked, cancelled := s.of(methodToolsList), s.of(notifyCancelled)
			if len(cancelled) != i+1 {
				t.Fatalf("%d: %d cancellations", i, len(cancelled))
			}
			var p CancelledParams
			if err := decodeAt(cancelled[i].Params, &p, rev20260728, true); err != nil || p.RequestID != asked[i].ID || p.Reason == "" {
				t.Errorf("%d: cancelled %s, %v", i, cancelled[i].Params, err)
			}
			s.send(resultOf(asked[i], `{}`), errorOf(asked[i], -32603)) // late
		}
		before := len(s.received())
		if err := cs.Call(short, methodToolsList, nil, nil); !errors.Is(err, context.DeadlineExceeded) || len(s.received()) != before {
			t.Errorf("with a context that is over: %v, %s", err, s.methods())
		}
	})
}

// An answer that came before the caller gave up counts, and nothing is
// cancelled.
func TestClientAnswerCrossesCancel(t *testing.T) {
	shows(t, "cancel.race", "cancel.target.client")
	eachEra(t, func(t *testing.T, version string) {
		cs, s := connected(t, version, ClientOptions{}, func(m Message) []string {
			if m.Method == methodToolsList {
				return append(progressOf(m, "1"), resultOf(m, `{"tools":[]}`))
			}
			return nil
		})
		for range 50 { // which of the two is seen first is left to chance
			ctx, stop := context.WithCancel(t.Context())
			view := cs.With(CallOptions{Progress: func(ProgressParams) {
				time.Sleep(time.Second) // the answer comes
				stop()
			}})
			if err := view.Call(ctx, methodToolsList, nil, nil); err != nil {
				t.Error(err)
			}
		}
		if got := len(s.of(notifyCancelled)); got != 0 {
			t.Errorf("%d cancellations", got)
		}
	})
}

// Nothing that a peer does not read keeps a caller.
func TestClientPeerDoesNotRead(t *testing.T) {
	shows(t, "timeout.set", "cancel.receiver.ignore")
	bubble(t, func(t *testing.T) {
		d := newDeaf()
		c := NewClient(Implementation{}, nil)
		cs, err := c.open(t.Context(), d, nil)
		if err != nil {
			t.Fatal(err)
		}
		cs.link.speak(rev20260728)
		big := json.RawMessage(`{"name":"` + strings.Repeat("x", 1<<20) + `"}`)
		for i := range 40 { // more than may wait to be written
			began := time.Now()
			err := cs.With(CallOptions{Timeout: time.Second}).Call(context.Background(), methodToolsCall, big, nil)
			if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took > 1100*time.Millisecond {
				t.Fatalf("call %d: %v after %v", i, err, took)
			}
		}
		began := time.Now()
		if cs.Close(); time.Since(began) > 3*time.Second {
			t.Errorf("closing took %v", time.Since(began))
		}
	})
}

func TestClientLateAnswers(t *testing.T) {
	shows(t, "cancel.sender.late", "cancel.receiver.free")
	eachEra(t, func(t *testing.T, version string) {
		var s *scripted
		cs, s := connected(t, version, ClientOptions{}, func(m Message) []string {
			if m.IsRequest() {
				go func() { time.Sleep(50 * time.Millisecond); s.send(resultOf(m, `{}`)) }()
			}
			return nil
		})
		view := cs.With(CallOptions{Timeout: time.Millisecond})
		for range 1000 {
			if err := view.Call(t.Context(), methodToolsList, nil, nil); !errors.Is(err, context.DeadlineExceeded) {
				t.Fatal(err)
			}
		}
		if err := cs.Call(t.Context(), methodToolsList, nil, nil); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		core := cs.link.core
		core.mu.Lock()
		defer core.mu.Unlock()
		if len(core.calls)+len(core.running)+len(core.notes) != 0 {
			t.Errorf("kept %d calls, %d requests, %d notices", len(core.calls), len(core.running), len(core.notes))
		}
	})
}

func progressOf(m Message, values ...string) (frames []string) {
	for _, v := range values {
		frames = append(frames, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":`+m.ID.String()+`,"progress":`+v+`,"message":"m"}}`)
	}
	return frames
}

func TestClientProgress(t *testing.T) {
	shows(t, "progress.float", "progress.track", "progress.optional", "progress.only-active", "progress.message")
	eachEra(t, func(t *testing.T, version string) {
		cs, _ := connected(t, version, ClientOptions{}, func(m Message) []string {
			if !m.IsRequest() {
				return nil
			}
			frames := append(progressOf(m, "0", `0.25,"total":null`, "1"), progressOf(Message{ID: IntID(999)}, "5")...)
			frames = append(frames, progressOf(Message{ID: StringID(m.ID.String())}, "6")...)
			return append(append(frames, resultOf(m, `{"tools":[]}`)), progressOf(m, "2", "3")...)
		})
		var seen []string
		view := cs.With(CallOptions{Progress: func(p ProgressParams) {
			seen = append(seen, fmt.Sprint(p.Progress, p.Message))
			if p.Progress == 0.25 {
				panic("in a callback")
			}
		}})
		for range 2 {
			seen = nil
			if err := view.Call(t.Context(), methodToolsList, nil, nil); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if got := strings.Join(seen, " "); got != "0m 0.25m 1m" {
				t.Errorf("progress %s", got)
			}
		}
	})
}

// Progress keeps a call alive, up to the ceiling.
func TestClientProgressExtends(t *testing.T) {
	shows(t, "timeout.progress-reset", "timeout.maximum", "timeout.configurable")
	eachEra(t, func(t *testing.T, version string) {
		var s *scripted
		steps, deaf := 8, false
		cs, s := connected(t, version, ClientOptions{Timeout: 2 * time.Second}, func(m Message) []string {
			if steps, deaf := steps, deaf; m.IsRequest() {
				go func() {
					for range steps {
						time.Sleep(1500 * time.Millisecond)
						s.send(progressOf(m, "1")...)
					}
					if !deaf {
						s.send(resultOf(m, `{}`))
					}
				}()
			}
			return nil
		})
		began := time.Now()
		timed := func(opts CallOptions) (time.Duration, error) {
			began = time.Now()
			err := cs.With(opts).Call(t.Context(), methodToolsList, nil, nil)
			return time.Since(began), err
		}
		hear := func(ProgressParams) {}
		if took, err := timed(CallOptions{Progress: hear}); err != nil || took != 12*time.Second {
			t.Errorf("with progress: %v after %v", err, took)
		}
		if took, err := timed(CallOptions{}); !errors.Is(err, context.DeadlineExceeded) || took != 2*time.Second {
			t.Errorf("progress that nobody asked for: %v after %v", err, took)
		}
		synctest.Wait()
		steps, deaf = 50, true
		if took, err := timed(CallOptions{Progress: hear}); !errors.Is(err, context.DeadlineExceeded) || took != 20*time.Second {
			t.Errorf("progress for ever: %v after %v", err, took)
		}
		if took, err := timed(CallOptions{Progress: hear, MaxTimeout: 7 * time.Second}); !errors.Is(err, context.DeadlineExceeded) || took != 7*time.Second {
			t.Errorf("own ceiling: %v after %v", err, took)
		}
		time.Sleep(2 * time.Minute) // the script ends
	})
}

// What comes for a pending id ends that call, and only what is valid ends it
// well; the session goes on.
func TestClientOddResponses(t *testing.T) {
	shows(t, "base.response.exclusive", "base.response.same-id", "base.result.present", "base.result.open-shape", "base.error.data-any",
		"base.error.object", "base.error.code-integer", "base.resulttype.absent-complete", "base.resulttype.unknown-invalid", "resources.error.accept-32002")
	for _, c := range []struct {
		rest   string // of the response
		peers  int    // the code of the peer's error
		wrong  string // "": good at both eras; "m": at 2026-07-28 no; "b": at both no
		within string // of the error's text
	}{
		{`"result":{"contents":[],"more":{"a":[1]},"resultType":"complete"},"extra":1`, 0, "", ""},
		{`"result":{"contents":[]}`, 0, "", ""},
		{`"result":{"contents":null}`, 0, "", ""},
		{`"result":{}`, 0, "", ""},
		{`"result":{"contents":[],"resultType":"compl\u0065te"}`, 0, "", ""},
		{`"result":{"contents":[],"resultType":"weird"}`, 0, "m", "weird"},
		{`"result":{"contents":[],"resultType":null}`, 0, "m", "null"},
		{`"result":{"contents":[],"resultType":7}`, 0, "m", "7"},
		{`"result":[]`, 0, "b", "object"},
		{`"result":null`, 0, "b", "object"},
		{`"result":{"contents":{}}`, 0, "b", "contents"},
		{`"result":{},"error":{"code":1,"message":"x"}`, 0, "b", "invalid response"},
		{`"error":{"code":1.5,"message":"x"}`, 0, "b", "invalid response"},
		{`"error":{"message":"x"}`, 0, "b", "invalid response"},
		{`"error":[]`, 0, "b", "invalid response"},
		{`"error":{"code":-32002,"message":"Resource not found","data":{"uri":"x"}}`, CodeResourceNotFound, "b", "Resource not found"},
		{`"error":{"code":7,"message":"m","data":"text"}`, 7, "b", "m"},
		{`"error":{"code":7,"message":"m","data":[1]}`, 7, "b", "m"},
		{`"error":{"code":7,"message":"m","data":null}`, 7, "b", "m"},
		{`"error":{"code":0,"message":"m"}`, 0, "b", "m"},
	} {
		t.Run(c.rest, func(t *testing.T) {
			eachEra(t, func(t *testing.T, version string) {
				odd := true
				cs, _ := connected(t, version, ClientOptions{}, func(m Message) []string {
					if !odd {
						return []string{resultOf(m, `{"contents":[]}`)}
					}
					return []string{`{"jsonrpc":"2.0","id":12345,"result":{}}`, `{"jsonrpc":"2.0","error":{"code":1,"message":"x"}}`,
						`{"jsonrpc":"2.0","id":"` + m.ID.String() + `","result":{"contents":7}}`,
						`{"jsonrpc":"2.0","id":` + m.ID.String() + `,` + c.rest + `}`, resultOf(m, `{"contents":7}`)}
				})
				_, err := cs.ReadResource(t.Context(), "x")
				if wrong := c.wrong == "b" || c.wrong == "m" && version == Version20260728; wrong != (err != nil) {
					t.Fatalf("error %v", err)
				}
				var e *Error
				if err != nil && (!strings.Contains(err.Error(), c.within) || c.peers != 0 && (!errors.As(err, &e) || e.Code != c.peers)) {
					t.Errorf("error %v", err)
				}
				if c.peers == 0 && isPeers(err) != strings.Contains(c.rest, `"code":0`) {
					t.Errorf("taken for the peer's: %v", err)
				}
				odd = false
				if _, err := cs.ReadResource(t.Context(), "x"); err != nil {
					t.Errorf("afterwards: %v", err)
				}
			})
		})
	}
}

// The end of a server ends every call, those that come later too.
func TestClientServerDies(t *testing.T) {
	shows(t, "lifecycle.errors", "errors.local.distinct")
	eachEra(t, func(t *testing.T, version string) {
		asked := make(chan bool)
		opts := ClientOptions{Timeout: -1, Elicit: func(ctx context.Context, _ *ElicitParams) (*ElicitResult, error) {
			asked <- true
			<-ctx.Done() // whoever waits for the user does not keep the caller
			return nil, ctx.Err()
		}}
		question := `"method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object","properties":{}}}`
		cs, s := connected(t, version, opts, func(m Message) []string {
			if m.Method != methodToolsCall {
				return nil
			}
			if version == Version20251125 {
				return []string{`{"jsonrpc":"2.0","id":"q",` + question + `}`}
			}
			return []string{resultOf(m, `{"resultType":"input_required","inputRequests":{"k":{`+question+`}}}`)}
		})
		failed := make(chan error)
		for range 10 {
			go func() { failed <- cs.Call(t.Context(), methodToolsList, nil, nil) }()
		}
		go func() { _, err := cs.CallTool(t.Context(), "x", nil); failed <- err }()
		<-asked
		synctest.Wait()
		began := time.Now()
		s.conn.Close()
		for range 11 {
			if err := <-failed; !errors.Is(err, ErrClosed) || isPeers(err) {
				t.Errorf("error %v", err)
			}
		}
		if err := cs.Call(t.Context(), methodToolsList, nil, nil); !errors.Is(err, ErrClosed) {
			t.Errorf("a later call: %v", err)
		}
		if took := time.Since(began); took > 0 {
			t.Errorf("took %v", took)
		}
		if err := cs.Wait(); err != nil {
			t.Errorf("the end: %v", err)
		}
	})
}

// roundsOf answers a call with each of these results in turn, the last for ever.
func roundsOf(results ...string) react {
	n := 0
	return func(m Message) []string {
		if !m.IsRequest() {
			return nil
		}
		body := results[min(n, len(results)-1)]
		n++
		return []string{resultOf(m, body)}
	}
}

const (
	askForm = `{"method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}}}`
	askLLM  = `{"method":"sampling/createMessage","params":{"messages":[{"role":"user","content":{"type":"text","text":"hi"}}],"maxTokens":5}}`
	askDirs = `{"method":"roots/list"}`
	final   = `{"resultType":"complete","content":[],"contents":[],"messages":[]}`
)

// withoutEnvelope is the params of a request less its _meta.
func withoutEnvelope(t *testing.T, m Message) string {
	p, err := without(m.Params, rev20260728, "_meta")
	if err != nil {
		t.Fatal(err)
	}
	return string(p)
}

// What a retry carries, round by round.
func TestClientRounds(t *testing.T) {
	shows(t, "mrtr.client.fulfil", "mrtr.client.immediate", "mrtr.client.keys", "mrtr.client.new-id", "mrtr.client.same-params", "mrtr.client.scope",
		"mrtr.state.absent", "mrtr.state.echo", "mrtr.state.opaque", "mrtr.repeat", "base.id.unique-inflight", "meta.request.required")
	const state = `"\u0041\/é {\"k\":1} \u0000\ud83d\ude00"`
	for _, c := range []struct {
		name    string
		results []string
		retries []string // what each adds to the params
	}{
		{"all three, with state", []string{`{"resultType":"input_required","requestState":` + state + `,"inputRequests":{"a":` + askForm + `,"b":` + askLLM + `,"":` + askDirs + `},"_meta":{"x":1}}`, final},
			[]string{`,"inputResponses":{"":{"roots":[{"uri":"file:///r"}]},"a":{"action":"accept","content":{"name":"Ada"}},"b":{"role":"assistant","model":"m","content":{"type":"text","text":"sampled"}}},"requestState":` + state}},
		{"only state", []string{`{"resultType":"input_required","requestState":""}`, final}, []string{`,"requestState":""`}},
		{"only questions", []string{`{"resultType":"input_required","inputRequests":{"a":` + askDirs + `}}`, final},
			[]string{`,"inputResponses":{"a":{"roots":[{"uri":"file:///r"}]}}`}},
		{"no questions, no state", []string{`{"resultType":"input_required","inputRequests":{}}`, final}, []string{`,"inputResponses":{}`}},
		{"state that goes away", []string{`{"resultType":"input_required","requestState":"1"}`, `{"resultType":"input_required","inputRequests":{"k":` + askDirs + `},"requestState":null}`, `{"resultType":"input_required","requestState":"2"}`, final},
			[]string{`,"requestState":"1"`, `,"inputResponses":{"k":{"roots":[{"uri":"file:///r"}]}}`, `,"requestState":"2"`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				cs, s := connected(t, Version20260728, answering(), roundsOf(c.results...))
				view := cs.With(CallOptions{Meta: Meta{"mine": json.RawMessage(`1`)}})
				if _, err := view.CallTool(t.Context(), "x", map[string]any{"n": json.Number("9007199254740993")}); err != nil {
					t.Fatal(err)
				}
				sent := s.of(methodToolsCall)
				if len(sent) != len(c.retries)+1 {
					t.Fatalf("%d requests", len(sent))
				}
				seen := map[ID]bool{}
				for i, m := range sent {
					added := ""
					if i > 0 {
						added = c.retries[i-1]
					}
					wantJSON(t, withoutEnvelope(t, m), `{"name":"x","arguments":{"n":9007199254740993}`+added+`}`)
					if state := rawMember(m.Params, "requestState"); state != nil && !strings.Contains(added, string(state)) {
						t.Errorf("state %s", state)
					}
					if seen[m.ID] {
						t.Errorf("id %s again", m.ID)
					}
					seen[m.ID] = true
					if string(rawMember(m.Params, "_meta")) != string(rawMember(sent[0].Params, "_meta")) {
						t.Errorf("_meta of %s", m.Params)
					}
				}
				if err := cs.Call(t.Context(), methodToolsList, nil, nil); err != nil {
					t.Fatal(err)
				}
				if got := withoutEnvelope(t, s.of(methodToolsList)[0]); got != "{}" {
					t.Errorf("another request carries %s", got)
				}
			})
		})
	}
}

// Rounds that come to nothing, and are no error of the peer.
func TestClientRoundsRefused(t *testing.T) {
	shows(t, "mrtr.methods.allowed", "errors.local.distinct", "sampling.error.no-replay", "roots.error.no-replay", "sampling.error.modern",
		"sampling.tools.undeclared-error", "elicit.mode.undeclared-modern", "elicit.form.client-validate", "base.resulttype.closed-set")
	ask := func(q string) string {
		return `{"resultType":"input_required","requestState":"s","inputRequests":{"k":` + q + `}}`
	}
	for _, c := range []struct {
		name, result, within string
		change               func(o *ClientOptions)
	}{
		{"neither", `{"resultType":"input_required"}`, "without", nil},
		{"state a number", `{"resultType":"input_required","requestState":7}`, "requestState", nil},
		{"questions an array", `{"resultType":"input_required","inputRequests":[]}`, "inputRequests", nil},
		{"a question null", ask(`null`), "", nil},
		{"no method", ask(`{"params":{}}`), "", nil},
		{"unknown method", ask(`{"method":"tools/list"}`), "not found", nil},
		{"ping", ask(`{"method":"ping"}`), "not found", nil},
		{"no params", ask(`{"method":"elicitation/create"}`), "", nil},
		{"a page", ask(`{"method":"elicitation/create","params":{"mode":"url","message":"?","url":"https://x"}}`), "not declared", nil},
		{"tools", ask(`{"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1,"tools":[]}}`), "not declared", nil},
		{"mixed results", ask(`{"method":"sampling/createMessage","params":{"maxTokens":1,"messages":[{"role":"user","content":[{"type":"text","text":"x"},{"type":"tool_result","toolUseId":"1","content":[]}]}]}}`), "tool", nil},
		{"no form for it", ask(askForm), "not found", func(o *ClientOptions) { o.Elicit = nil }},
		{"undeclared", ask(askDirs), "not found", func(o *ClientOptions) { o.Capabilities = &ClientCapabilities{} }},
		{"the callback fails", ask(askLLM), "no model", func(o *ClientOptions) {
			o.Sample = func(context.Context, *CreateMessageParams) (*CreateMessageResult, error) {
				return nil, fmt.Errorf("no model: %w", Errorf(CodeUserRejected, "rejected"))
			}
		}},
		{"the callback panics", ask(askDirs), "panic", func(o *ClientOptions) { o.Roots = func(context.Context) ([]Root, error) { panic(1) } }},
		{"nothing", ask(askLLM), "nothing", func(o *ClientOptions) {
			o.Sample = func(context.Context, *CreateMessageParams) (*CreateMessageResult, error) { return nil, nil }
		}},
		{"does not fit", ask(askForm), "fit", elicits(&ElicitResult{Action: "accept", Content: json.RawMessage(`{}`)})},
		{"no content", ask(askForm), "fit", elicits(&ElicitResult{Action: "accept"})},
		{"strange action", ask(askForm), "maybe", elicits(&ElicitResult{Action: "maybe"})},
		{"no file", ask(askDirs), "file", rootsAt("https://x/y")},
		{"climbs", ask(askDirs), "..", rootsAt("file:///a/%2e%2e/b")},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				opts := answering()
				if c.change != nil {
					c.change(&opts)
				}
				cs, s := connected(t, Version20260728, opts, roundsOf(c.result, final))
				_, err := cs.CallTool(t.Context(), "x", nil)
				if err == nil || isPeers(err) || !strings.Contains(err.Error(), c.within) {
					t.Errorf("error %v", err)
				}
				if got := s.methods(); got != "server/discover tools/call" {
					t.Errorf("sent %s", got)
				}
			})
		})
	}
}

func elicits(r *ElicitResult) func(*ClientOptions) {
	return func(o *ClientOptions) {
		o.Elicit = func(context.Context, *ElicitParams) (*ElicitResult, error) { return r, nil }
	}
}

func rootsAt(uri string) func(*ClientOptions) {
	return func(o *ClientOptions) {
		o.Roots = func(context.Context) ([]Root, error) { return []Root{{URI: uri}}, nil }
	}
}

// On which methods a server may ask, how often, and that a refusal by the
// user is an answer.
func TestClientRoundsReach(t *testing.T) {
	shows(t, "mrtr.methods.allowed", "mrtr.repeat", "elicit.result.content", "base.resulttype.unknown-invalid", "elicit.mode.default")
	bubble(t, func(t *testing.T) {
		asking := `{"resultType":"input_required","inputRequests":{"k":` + askForm + `}}`
		opts := answering()
		elicits(&ElicitResult{Action: "decline", Content: json.RawMessage(`{"name":"x"}`)})(&opts)
		for _, method := range []string{methodToolsCall, methodPromptsGet, methodResourcesRead, methodToolsList, methodComplete, "x/y"} {
			cs, s := connected(t, Version20260728, opts, roundsOf(asking, final))
			err := cs.Call(t.Context(), method, map[string]string{"name": "x"}, nil)
			if mayAsk(method) != (err == nil) || isPeers(err) {
				t.Errorf("%s: %v", method, err)
			}
			if sent := s.of(method); err == nil && string(rawMember(sent[1].Params, "inputResponses")) != `{"k":{"action":"decline"}}` {
				t.Errorf("%s: sent %s", method, sent[1].Params)
			}
		}
		for _, bound := range []int{0, 3} {
			opts.MaxRounds = bound
			cs, s := connected(t, Version20260728, opts, roundsOf(asking))
			_, err := cs.CallTool(t.Context(), "x", nil)
			if want := max(bound, 10*(1-min(bound, 1))) + 1; err == nil || isPeers(err) || len(s.of(methodToolsCall)) != want {
				t.Errorf("%v after %d requests", err, len(s.of(methodToolsCall)))
			}
		}
		cs, s := connected(t, Version20251125, opts, roundsOf(asking))
		if r, err := cs.CallTool(t.Context(), "x", nil); err != nil || r.Content == nil && len(r.Content) != 0 {
			t.Errorf("legacy: %+v, %v", r, err)
		}
		if got := len(s.of(methodToolsCall)); got != 1 {
			t.Errorf("legacy: %d requests", got)
		}
	})
}

// Answers that the caller gives by hand are not sent again.
func TestClientRoundsByHand(t *testing.T) {
	shows(t, "mrtr.client.same-params", "base.jsonrpc.conform")
	bubble(t, func(t *testing.T) {
		cs, s := connected(t, Version20260728, answering(), roundsOf(`{"resultType":"input_required","inputRequests":{"k":`+askDirs+`}}`, final))
		p := json.RawMessage(`{"name":"x","requestState":"old","inputResponses":{"old":{}}}`)
		if err := cs.Call(t.Context(), methodToolsCall, p, nil); err != nil {
			t.Fatal(err)
		}
		sent := s.of(methodToolsCall)
		wantJSON(t, withoutEnvelope(t, sent[0]), string(p))
		wantJSON(t, withoutEnvelope(t, sent[1]), `{"name":"x","inputResponses":{"k":{"roots":[{"uri":"file:///r"}]}}}`)
	})
}

// Questions are asked at the same time; the caller, or the first that fails,
// ends them all.
func TestClientRoundsConcurrent(t *testing.T) {
	shows(t, "mrtr.client.fulfil", "cancel.receiver.stop")
	bubble(t, func(t *testing.T) {
		var meet sync.WaitGroup
		meet.Add(2)
		opts := answering()
		opts.Roots = func(context.Context) ([]Root, error) { meet.Done(); meet.Wait(); return nil, nil }
		both := `{"resultType":"input_required","inputRequests":{"a":` + askDirs + `,"b":` + askDirs + `}}`
		cs, s := connected(t, Version20260728, opts, roundsOf(both, final))
		if _, err := cs.CallTool(t.Context(), "x", nil); err != nil {
			t.Error(err)
		}
		if got := string(rawMember(s.of(methodToolsCall)[1].Params, "inputResponses")); got != `{"a":{"roots":[]},"b":{"roots":[]}}` {
			t.Errorf("answers %s", got)
		}
		ended := make(chan error, 2)
		opts.Elicit = func(ctx context.Context, _ *ElicitParams) (*ElicitResult, error) {
			<-ctx.Done()
			ended <- ctx.Err()
			return nil, ctx.Err()
		}
		opts.Roots = func(context.Context) ([]Root, error) { time.Sleep(time.Second); return nil, errors.New("no roots") }
		mixed := `{"resultType":"input_required","inputRequests":{"a":` + askForm + `,"b":` + askDirs + `}}`
		cs, _ = connected(t, Version20260728, opts, roundsOf(mixed, final))
		if _, err := cs.CallTool(t.Context(), "x", nil); err == nil || !strings.Contains(err.Error(), "no roots") {
			t.Errorf("one fails: %v", err)
		}
		<-ended
		ctx, stop := context.WithTimeout(t.Context(), time.Millisecond)
		defer stop()
		if _, err := cs.CallTool(ctx, "x", nil); err != nil { // answered by final
			t.Error(err)
		}
		stubborn := `{"resultType":"input_required","inputRequests":{"b":` + askDirs + `}}`
		cs, _ = connected(t, Version20260728, opts, roundsOf(stubborn))
		ctx, stop = context.WithTimeout(t.Context(), time.Millisecond)
		defer stop()
		began := time.Now()
		if _, err := cs.CallTool(ctx, "x", nil); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Millisecond {
			t.Errorf("the caller gives up: %v after %v", err, time.Since(began))
		}
		time.Sleep(time.Second)
	})
}

// A question is a request of a server of before 2026-07-28, and what it is
// told.
type question struct {
	name, request string
	answer        string // the rest of the response, or the code of an error
	change        func(o *ClientOptions)
}

func nothing(o *ClientOptions) { *o = ClientOptions{} }

func samples(r *CreateMessageResult, err error) func(o *ClientOptions) {
	return func(o *ClientOptions) {
		o.Sample = func(context.Context, *CreateMessageParams) (*CreateMessageResult, error) { return r, err }
	}
}

func declares(caps ClientCapabilities) func(o *ClientOptions) {
	return func(o *ClientOptions) { o.Capabilities = &caps }
}

func askModel(messages string) string {
	return `"method":"sampling/createMessage","params":{"maxTokens":1,"messages":[` + messages + `]}`
}

func generalQuestions() []question {
	return []question{
		{"ping", `"method":"ping"`, `"result":{}`, nothing},
		{"ping with params", `"method":"ping","params":{"_meta":{"a":1}}`, `"result":{}`, nil},
		{"roots", `"method":"roots/list"`, `"result":{"roots":[{"uri":"file:///r"}]}`, nil},
		{"roots, none", `"method":"roots/list","params":{}`, `"result":{"roots":[]}`, func(o *ClientOptions) { o.Roots = func(context.Context) ([]Root, error) { return nil, nil } }},
		{"roots undeclared", `"method":"roots/list"`, `-32601`, nothing},
		{"roots not in Capabilities", `"method":"roots/list"`, `-32601`, declares(ClientCapabilities{})},
		{"roots fail", `"method":"roots/list"`, `-32603`, func(o *ClientOptions) {
			o.Roots = func(context.Context) ([]Root, error) { return nil, errors.New("secret") }
		}},
		{"roots panic", `"method":"roots/list"`, `-32603`, func(o *ClientOptions) { o.Roots = func(context.Context) ([]Root, error) { panic("secret") } }},
		{"root elsewhere", `"method":"roots/list"`, `-32603`, rootsAt("https://secret/")},
		{"root climbs", `"method":"roots/list"`, `-32603`, rootsAt("file:///secret/../x")},
		{"root with dots in a name", `"method":"roots/list"`, `"result":{"roots":[{"uri":"file:///a..b/..c"}]}`, rootsAt("file:///a..b/..c")},
		{"unknown method", `"method":"tools/list","params":{}`, `-32601`, nil},
		{"unheard of", `"method":"x"`, `-32601`, nil},
		{"params an array", `"method":"ping","params":[]`, `-32602`, nil},
	}
}

func modelQuestions() []question {
	use, used := `{"type":"tool_use","id":"1","name":"f","input":{}}`, `{"type":"tool_result","toolUseId":"1","content":[]}`
	return []question{
		{"sampling", askModel(`{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`),
			`"result":{"role":"assistant","model":"m","content":{"type":"text","text":"sampled"}}`, nil},
		{"sampling, any reason", askModel(``), `"result":{"role":"assistant","model":"m","stopReason":"bored","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`,
			samples(&CreateMessageResult{Role: "assistant", Model: "m", StopReason: "bored", Content: []Content{Text("a"), Text("b")}}, nil)},
		{"sampling undeclared", askModel(``), `-32601`, nothing},
		{"sampling rejected", askModel(``), `"error":{"code":-1,"message":"rejected"}`, samples(nil, fmt.Errorf("so: %w", Errorf(CodeUserRejected, "rejected")))},
		{"sampling code 0", askModel(``), `-32603`, samples(nil, &Error{Message: "secret"})},
		{"sampling nothing", askModel(``), `-32603`, samples(nil, nil)},
		{"sampling with tools", `"method":"sampling/createMessage","params":{"maxTokens":1,"messages":[],"tools":[]}`, `-32602`, nil},
		{"sampling with a choice", `"method":"sampling/createMessage","params":{"maxTokens":1,"messages":[],"toolChoice":{}}`, `-32602`, nil},
		{"sampling mixed", askModel(`{"role":"assistant","content":` + use + `},{"role":"user","content":[` + used + `,{"type":"text","text":"x"}]}`), `-32602`, nil},
		{"sampling, no result", askModel(`{"role":"assistant","content":` + use + `},{"role":"user","content":{"type":"text","text":"x"}}`), `-32602`, nil},
		{"sampling, no result at the end", askModel(`{"role":"assistant","content":` + use + `}`), `-32602`, nil},
		{"sampling, result of nothing", askModel(`{"role":"user","content":` + used + `}`), `-32602`, nil},
		{"sampling, balanced", askModel(`{"role":"assistant","content":` + use + `},{"role":"user","content":[` + used + `]}`),
			`"result":{"role":"assistant","model":"m","content":{"type":"text","text":"sampled"}}`, nil},
		{"sampling, params wrong", `"method":"sampling/createMessage","params":{"messages":7,"maxTokens":1}`, `-32602`, nil},
		{"sampling, no params", `"method":"sampling/createMessage"`, `-32602`, nil},
	}
}

func userQuestions() []question {
	form := askForm[1 : len(askForm)-1]
	return []question{
		{"form", form, `"result":{"action":"accept","content":{"name":"Ada"}}`, nil},
		{"form declined", form, `"result":{"action":"decline"}`, elicits(&ElicitResult{Action: "decline", Content: json.RawMessage(`{"name":"x"}`)})},
		{"form cancelled", form, `"result":{"action":"cancel"}`, elicits(&ElicitResult{Action: "cancel"})},
		{"form undeclared", form, `-32601`, nothing},
		{"form not in Capabilities", form, `-32601`, declares(ClientCapabilities{})},
		{"only pages declared", form, `-32602`, declares(ClientCapabilities{Elicitation: &ElicitationCapability{URL: &struct{}{}}})},
		{"empty capability is form", form, `"result":{"action":"accept","content":{"name":"Ada"}}`, declares(ClientCapabilities{Elicitation: &ElicitationCapability{}})},
		{"page undeclared", `"method":"elicitation/create","params":{"mode":"url","message":"?","url":"https://x","elicitationId":"1"}`, `-32602`, nil},
		{"page", `"method":"elicitation/create","params":{"mode":"url","message":"?","url":"https://x","elicitationId":"1"}`, `"result":{"action":"accept"}`, declares(ClientCapabilities{Elicitation: &ElicitationCapability{URL: &struct{}{}}})},
		{"strange mode", `"method":"elicitation/create","params":{"mode":"smoke","message":"?","requestedSchema":{"type":"object","properties":{}}}`, `-32602`, nil},
		{"form broken", `"method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"objekt","properties":7}}`, `-32602`, nil},
		{"form missing", `"method":"elicitation/create","params":{"message":"?"}`, `-32602`, nil},
		{"does not fit", form, `-32603`, elicits(&ElicitResult{Action: "accept", Content: json.RawMessage(`{"name":7}`)})},
		{"no such action", form, `-32603`, elicits(&ElicitResult{Action: "secret"})},
	}
}

// A server of before 2026-07-28 asks by requests of its own; this is what it
// is told.
func TestClientAnswersLegacyRequests(t *testing.T) {
	shows(t, "roots.error.unsupported", "roots.error.internal", "roots.uri", "roots.sec.validate", "sampling.error.rejected", "sampling.tools.undeclared-error",
		"sampling.error.missing-result", "sampling.error.mixed", "sampling.content.array", "sampling.stop-reason", "sampling.validate", "elicit.mode.undeclared-error",
		"elicit.mode.default", "elicit.form.client-validate", "elicit.result.content", "base.response.same-id", "base.result.present", "base.error.object", "lifecycle.op.capabilities")
	for _, c := range slices.Concat(generalQuestions(), modelQuestions(), userQuestions()) {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				opts := answering()
				if c.change != nil {
					c.change(&opts)
				}
				_, s := connected(t, Version20251125, opts, silent)
				s.send(`{"jsonrpc":"2.0","id":"q-1",` + c.request + `}`)
				answers := s.of("response")
				if len(answers) != 1 {
					t.Fatalf("%d answers: %s", len(answers), s.methods())
				}
				got := s.raw[len(s.raw)-1]
				if !strings.HasPrefix(c.answer, "-") {
					wantJSON(t, got, `{"jsonrpc":"2.0","id":"q-1",`+c.answer+`}`)
				} else if e := answers[0].Error; e == nil || fmt.Sprint(e.Code) != c.answer || answers[0].ID != StringID("q-1") {
					t.Errorf("answer %s", got)
				}
				if strings.Contains(got, "secret") {
					t.Errorf("it gives away what went wrong: %s", got)
				}
			})
		})
	}
}

// What a revision does not have is not answered for at that revision.
func TestClientElicitationBeforeItsTime(t *testing.T) {
	shows(t, "lifecycle.op.version", "lifecycle.op.version-old", "lifecycle.op.capabilities-old")
	for _, version := range []string{Version20241105, Version20250326} {
		bubble(t, func(t *testing.T) {
			_, s := connected(t, version, answering(), silent)
			s.send(`{"jsonrpc":"2.0","id":1,` + askForm[1:])
			if a := s.of("response"); len(a) != 1 || a[0].Error == nil || a[0].Error.Code != CodeMethodNotFound {
				t.Errorf("%s: %q", version, s.raw)
			}
		})
	}
}

// At 2026-07-28 a client answers nothing, whatever comes.
func TestClientModernSilence(t *testing.T) {
	shows(t, "patterns.no-client-responses", "patterns.client-notifications", "base.batch.rejected", "base.notif.no-response")
	bubble(t, func(t *testing.T) {
		asked := false
		opts := answering()
		opts.Roots = func(context.Context) ([]Root, error) { asked = true; return nil, nil }
		opts.Versions = []string{Version20260728}
		s, tr := script(t, func(m Message) []string {
			noise := []string{`{"jsonrpc":"2.0","id":1,"method":"ping"}`, `{"jsonrpc":"2.0","id":2,` + askDirs[1:], `{oops`, `[]`, `7`, ``,
				`[{"jsonrpc":"2.0","id":3,"method":"ping"}]`, `{"jsonrpc":"2.0","id":null,"method":"ping"}`, `{"jsonrpc":"2.0","id":4}`, `{"jsonrpc":"2.0","method":7}`}
			return append(append(noise, modern(each(`{"tools":[]}`))(m)...), noise...)
		})
		cs, err := dial(t, opts, tr)
		if err != nil {
			t.Fatal(err)
		}
		if err := cs.Call(t.Context(), methodToolsList, nil, nil); err != nil {
			t.Error(err)
		}
		if got := s.methods(); got != "server/discover tools/list" || asked {
			t.Errorf("sent %s, asked %v", got, asked)
		}
	})
}

// A batch is answered as one at 2025-03-26 and refused elsewhere.
func TestClientBatch(t *testing.T) {
	shows(t, "base.batch.rejected")
	const batch = `[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"x"},{"jsonrpc":"2.0","id":2,"method":"nope"}]`
	for _, version := range []string{Version20250326, Version20250618} {
		bubble(t, func(t *testing.T) {
			_, s := connected(t, version, ClientOptions{}, silent)
			s.send(batch)
			synctest.Wait()
			got := s.raw[len(s.raw)-1]
			if allowed := version == Version20250326; allowed != strings.HasPrefix(got, "[") || !allowed && !strings.Contains(got, "-32600") {
				t.Errorf("%s: %s", version, got)
			}
		})
	}
}

func TestClientPages(t *testing.T) {
	shows(t, "pagination.both", "pagination.empty-cursor", "pagination.end", "pagination.opaque", "pagination.page-size", "pagination.no-persist")
	page := func(next string, names ...string) string {
		var tools []string
		for _, name := range names {
			tools = append(tools, `{"name":"`+name+`","inputSchema":{"type":"object"}}`)
		}
		if next != "" {
			next = `,"nextCursor":` + next
		}
		return `{"tools":[` + strings.Join(tools, ",") + `]` + next + `}`
	}
	for _, c := range []struct {
		name    string
		results []string
		tools   string
		cursors string // of the requests, "-" for none
		fails   string
	}{
		{"one page", []string{page("", "a", "b")}, "a b", "-", ""},
		{"three, one empty", []string{page(`" x\u00e9\"/"`, "a"), page(`"2"`), page("", "b", "c")}, "a b c", `- " xé\"/" "2"`, ""},
		{"the empty cursor", []string{page(`""`, "a"), page("", "b")}, "a b", `- ""`, ""},
		{"null ends", []string{page(`null`, "a"), page("", "b")}, "a", `-`, ""},
		{"null for tools", []string{`{"tools":null}`}, "", "-", ""},
		{"no tools", []string{`{}`}, "", "-", ""},
		{"a repeated cursor", []string{page(`"x"`, "a"), page(`"x"`, "b")}, "a b", `- "x"`, "repeats"},
		{"the empty cursor repeated", []string{page(`""`, "a")}, "a a", `- ""`, "repeats"},
		{"two in turn", []string{page(`"x"`, "a"), page(`"y"`, "b"), page(`"x"`, "c")}, "a b c", `- "x" "y"`, "repeats"},
		{"a number", []string{page(`7`, "a")}, "", "-", "nextCursor"},
		{"tools an object", []string{`{"tools":{}}`}, "", "-", "tools"},
	} {
		t.Run(c.name, func(t *testing.T) {
			eachEra(t, func(t *testing.T, version string) {
				cs, s := connected(t, version, ClientOptions{}, roundsOf(c.results...))
				var tools, cursors []string
				var failed error
				for tool, err := range cs.Tools(t.Context()) {
					if failed = err; err == nil {
						tools = append(tools, tool.Name)
					}
				}
				for _, m := range s.of(methodToolsList) {
					cursor := string(rawMember(m.Params, "cursor"))
					if cursor == "" {
						cursor = "-"
					}
					cursors = append(cursors, cursor)
				}
				if got := strings.Join(tools, " "); got != c.tools {
					t.Errorf("tools %s", got)
				}
				if got := strings.Join(cursors, " "); got != c.cursors {
					t.Errorf("cursors %s", got)
				}
				if (failed != nil) != (c.fails != "") || failed != nil && !strings.Contains(failed.Error(), c.fails) {
					t.Errorf("error %v", failed)
				}
			})
		})
	}
}

// The lists of a server that never comes to an end, that has nothing, and
// that has nothing in place of something.
func TestClientListsBounded(t *testing.T) {
	shows(t, "pagination.both", "pagination.end")
	bubble(t, func(t *testing.T) {
		n := 0
		cs, _ := connected(t, Version20251125, ClientOptions{}, func(m Message) []string {
			n++
			return []string{resultOf(m, fmt.Sprintf(`{"tools":[],"nextCursor":"%d"}`, n))}
		})
		var failed error
		for _, failed = range cs.Tools(t.Context()) {
		}
		if failed == nil || n != maxPages {
			t.Errorf("%d pages, %v", n, failed)
		}
	})
	for _, body := range []string{`{}`, `{"tools":null,"prompts":null,"resources":null,"resourceTemplates":null}`, `{"tools":[null],"prompts":[null],"resources":[null],"resourceTemplates":[null]}`} {
		eachEra(t, func(t *testing.T, version string) {
			cs, _ := connected(t, version, ClientOptions{}, each(body))
			ctx, some := t.Context(), 0
			for tool, err := range cs.Tools(ctx) {
				some += fine(t, tool != nil, err)
			}
			for prompt, err := range cs.Prompts(ctx) {
				some += fine(t, prompt != nil, err)
			}
			for resource, err := range cs.Resources(ctx) {
				some += fine(t, resource != nil, err)
			}
			for template, err := range cs.ResourceTemplates(ctx) {
				some += fine(t, template != nil, err)
			}
			if some != 0 && !strings.Contains(body, "[null]") {
				t.Errorf("%d entries in %s", some, body)
			}
		})
	}
}

// fine checks that there is either an entry or an error, and counts.
func fine(t *testing.T, entry bool, err error) int {
	if entry == (err != nil) {
		t.Errorf("entry %v, error %v", entry, err)
	}
	return 1
}

// What CallTool makes of a result, by the type asked for.
func TestClientCallTool(t *testing.T) {
	shows(t, "base.result.open-shape", "errors.local.distinct")
	type out struct {
		N int64 `json:"n"`
	}
	const big = `{"n":9007199254740993}`
	eachEra(t, func(t *testing.T, version string) {
		call := func(result string, check func(ctx context.Context, cs *ClientSession)) {
			t.Helper()
			cs, _ := connected(t, version, ClientOptions{}, each(result))
			check(t.Context(), cs)
		}
		text := `{"content":[{"type":"text","text":"{\"n\":9007199254740993}"}]}`
		for _, result := range []string{text, `{"content":[{"type":"text","text":"other"}],"structuredContent":` + big + `}`, `{"structuredContent":` + big + `}`} {
			call(result, func(ctx context.Context, cs *ClientSession) {
				if o, err := CallTool[out](ctx, cs, "x", nil); err != nil || o.N != 9007199254740993 {
					t.Errorf("%s: %+v, %v", result, o, err)
				}
				if o, err := CallTool[*out](ctx, cs, "x", nil); err != nil || o == nil || o.N != 9007199254740993 {
					t.Errorf("%s: %+v, %v", result, o, err)
				}
				if raw, err := CallTool[json.RawMessage](ctx, cs, "x", nil); err != nil || string(raw) != big {
					t.Errorf("%s: %s, %v", result, raw, err)
				}
			})
		}
		call(`{"content":[{"type":"text","text":"a"},{"type":"image","data":"AA==","mimeType":"image/png"},{"type":"text","text":"b"},{"type":"later","x":1}]}`, func(ctx context.Context, cs *ClientSession) {
			if s, err := CallTool[string](ctx, cs, "x", nil); err != nil || s != "a\nb" {
				t.Errorf("%q, %v", s, err)
			}
			if c, err := CallTool[[]Content](ctx, cs, "x", nil); err != nil || len(c) != 4 || c[1].Type != "image" {
				t.Errorf("%+v, %v", c, err)
			}
			if r, err := CallTool[*CallToolResult](ctx, cs, "x", nil); err != nil || len(r.Content) != 4 {
				t.Errorf("%+v, %v", r, err)
			}
			if o, err := CallTool[out](ctx, cs, "x", nil); err == nil || isPeers(err) {
				t.Errorf("%+v, %v", o, err)
			}
		})
		call(`{"content":[]}`, func(ctx context.Context, cs *ClientSession) {
			if o, err := CallTool[out](ctx, cs, "x", nil); err == nil || isPeers(err) {
				t.Errorf("nothing at all: %+v, %v", o, err)
			}
		})
		call(`{"content":[],"structuredContent":null}`, func(ctx context.Context, cs *ClientSession) {
			if o, err := CallTool[*out](ctx, cs, "x", nil); version == Version20260728 && (err != nil || o != nil) {
				t.Errorf("null: %+v, %v", o, err)
			}
		})
		call(`{"content":[null]}`, func(ctx context.Context, cs *ClientSession) { CallTool[string](ctx, cs, "x", nil) })
		call(`{"isError":true,"content":[{"type":"text","text":"no disk"}],"structuredContent":{"n":"x"}}`, func(ctx context.Context, cs *ClientSession) {
			var failed *ToolError
			if _, err := CallTool[out](ctx, cs, "x", nil); !errors.As(err, &failed) || isPeers(err) || failed.Error() != "mcp: no disk" || !failed.Result.IsError {
				t.Errorf("error %v", err)
			}
			if r, err := cs.CallTool(ctx, "x", nil); err != nil || !r.IsError {
				t.Errorf("%+v, %v", r, err)
			}
		})
	})
}

// What of a call is refused here, and how arguments are sent.
func TestClientArguments(t *testing.T) {
	shows(t, "base.schema.required-fields", "base.jsonrpc.conform")
	eachEra(t, func(t *testing.T, version string) {
		cs, s := connected(t, version, ClientOptions{}, each(final))
		for _, c := range []struct {
			args any
			want string // of params.arguments; "error" for none sent
		}{
			{nil, ""}, {map[string]any(nil), ""}, {struct{}{}, `{}`}, {json.RawMessage(`{"a": 1e400,"<":"&"}`), `{"a": 1e400,"<":"&"}`},
			{map[string]int64{"n": 9007199254740993}, `{"n":9007199254740993}`},
			{[]int{1}, "error"}, {"x", "error"}, {7, "error"}, {json.RawMessage(`{`), "error"}, {json.RawMessage("{\n}"), `{}`}, {func() {}, "error"},
		} {
			before := len(s.of(methodToolsCall))
			_, err := cs.CallTool(t.Context(), "x", c.args)
			sent := s.of(methodToolsCall)[before:]
			if (err != nil) != (c.want == "error") || len(sent) != map[bool]int{true: 1}[err == nil] || isPeers(err) {
				t.Errorf("%v: %v, %d sent", c.args, err, len(sent))
			} else if err == nil && strings.ReplaceAll(string(rawMember(sent[0].Params, "arguments")), " ", "") != strings.ReplaceAll(c.want, " ", "") {
				t.Errorf("%v: sent %s", c.args, sent[0].Params)
			}
		}
		for _, bad := range []Meta{{"a": nil}, {"a": json.RawMessage(`{`)}, {"a": json.RawMessage(``)}} {
			if err := cs.With(CallOptions{Meta: bad}).Call(t.Context(), "x/y", nil, nil); isPeers(err) || strings.Contains(s.methods(), "invalid") {
				t.Errorf("_meta %v: %v, %s", bad, err, s.methods())
			}
		}
		for _, params := range []any{7, "x", []int{1}, json.RawMessage(`[]`), json.RawMessage(`{"_meta":7}`), json.RawMessage(`{"_meta":[]}`), func() {}} {
			before := len(s.received())
			if err := cs.Call(t.Context(), "x/y", params, nil); err == nil || isPeers(err) || len(s.received()) != before {
				t.Errorf("params %v: %v", params, err)
			}
			if raw, ok := params.(json.RawMessage); !ok || raw[0] == '[' {
				if err := cs.Notify(t.Context(), "x/y", params); err == nil || len(s.received()) != before {
					t.Errorf("notification with params %v: %v", params, err)
				}
			}
		}
	})
}

// The caller's _meta goes along at every revision, and progress beside it.
func TestClientLegacyMeta(t *testing.T) {
	shows(t, "progress.token.unique", "base.schema.required-fields")
	bubble(t, func(t *testing.T) {
		cs, s := connected(t, Version20241105, ClientOptions{}, each(`{}`))
		mine := Meta{"a": json.RawMessage(`1.10`)}
		hear := func(ProgressParams) {}
		for _, c := range []struct {
			opts   CallOptions
			params any
			want   string
		}{
			{CallOptions{}, nil, ``},
			{CallOptions{Meta: mine}, nil, `{"_meta":{"a":1.10}}`},
			{CallOptions{Meta: mine, Progress: hear}, json.RawMessage(`{}`), `{"_meta":{"a":1.10,"progressToken":ID}}`},
			{CallOptions{Progress: hear}, json.RawMessage(`{"x":1,"_meta":{"b":2,"progressToken":"mine"}}`), `{"x":1,"_meta":{"b":2,"progressToken":ID}}`},
			{CallOptions{Meta: mine}, json.RawMessage(`{ "_meta" : { "a" : 2 } , "x" : 1 }`), `{"x":1,"_meta":{"a":1.10}}`},
			{CallOptions{}, json.RawMessage(`{"_meta":{"b":2}}`), `{"_meta":{"b":2}}`},
		} {
			if err := cs.With(c.opts).Call(t.Context(), methodToolsList, c.params, nil); err != nil {
				t.Fatal(err)
			}
			sent := s.of(methodToolsList)
			last := sent[len(sent)-1]
			if c.want == "" {
				if last.Params != nil {
					t.Errorf("sent %s", last.Params)
				}
				continue
			}
			wantJSON(t, string(last.Params), strings.ReplaceAll(c.want, "ID", last.ID.String()))
		}
		if len(mine) != 1 {
			t.Errorf("the caller's map changed: %v", mine)
		}
	})
}

// Notifications reach their callbacks in order, and a callback that panics
// harms nothing.
func TestClientNotifications(t *testing.T) {
	shows(t, "base.notif.no-response", "elicit.url.complete.unknown")
	eachEra(t, func(t *testing.T, version string) {
		var seen []string
		opts := ClientOptions{
			Log: func(_ context.Context, p *LogParams) {
				seen = append(seen, "log"+string(p.Data))
				panic("in a callback")
			},
			Notify: func(_ context.Context, method string, params json.RawMessage) {
				seen = append(seen, method+string(params))
				time.Sleep(time.Second)
			},
		}
		cs, s := connected(t, version, opts, each(`{}`))
		s.send(`{"jsonrpc":"2.0","method":"x","params":{"n":1}}`,
			`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":2}}`,
			`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":3}}`,
			`{"jsonrpc":"2.0","method":"notifications/elicitation/complete","params":{"elicitationId":"?"}}`,
			`{"jsonrpc":"2.0","method":"x"}`)
		if err := cs.Call(t.Context(), methodToolsList, nil, nil); err != nil { // nothing waits for the callbacks
			t.Error(err)
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		want := `x{"n":1} log2 notifications/message{"level":"info","data":2} notifications/message{"level":3} notifications/elicitation/complete{"elicitationId":"?"} x`
		if got := strings.Join(seen, " "); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		if got := len(s.of("response")); got != 0 {
			t.Errorf("%d answers", got)
		}
	})
}

// What the callbacks see of a question, and which answers to a form fit.
func TestClientQuestionsAsTheyCame(t *testing.T) {
	shows(t, "elicit.form.enums", "elicit.url.id-opaque", "elicit.url.no-auto-open", "elicit.url.no-prefetch", "elicit.form.client-validate",
		"sampling.caps.tools", "sampling.message.no-retain", "elicit.caps.one-mode")
	bubble(t, func(t *testing.T) {
		var seen []any
		content := ""
		opts := ClientOptions{
			Elicit: func(_ context.Context, p *ElicitParams) (*ElicitResult, error) {
				seen = append(seen, *p)
				return &ElicitResult{Action: "accept", Content: json.RawMessage(content)}, nil
			},
			Sample: func(_ context.Context, p *CreateMessageParams) (*CreateMessageResult, error) {
				seen = append(seen, *p)
				return &CreateMessageResult{Role: "assistant", Model: "m", Content: []Content{Text("x")}}, nil
			},
			Capabilities: &ClientCapabilities{Sampling: &SamplingCapability{Tools: &struct{}{}}, Elicitation: &ElicitationCapability{Form: &struct{}{}, URL: &struct{}{}}},
		}
		_, s := connected(t, Version20251125, opts, silent)
		var caps InitializeParams
		decodeAt(s.of(methodInitialize)[0].Params, &caps, revLegacy, true)
		if c := caps.Capabilities; c.Sampling.Tools == nil || c.Elicitation.Form == nil || c.Elicitation.URL == nil || c.Roots != nil {
			t.Errorf("declared %+v", c)
		}
		s.send(`{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"mode":"url","message":"?","url":"HTTPS://x/%41","elicitationId":" é/1"}}`)
		synctest.Wait()
		if p, ok := seen[0].(ElicitParams); !ok || p.URL != "HTTPS://x/%41" || p.ElicitationID != " é/1" {
			t.Errorf("saw %+v", seen[0])
		}
		for i := range 2 {
			s.send(`{"jsonrpc":"2.0","id":2,"method":"sampling/createMessage","params":{"messages":[{"role":"user","content":{"type":"text","text":"x"}}],"maxTokens":9007199254740993,"tools":[{"name":"f","inputSchema":{"type":"object"}}],"toolChoice":{"mode":"required"}}}`)
			synctest.Wait()
			if p, ok := seen[1+i].(CreateMessageParams); !ok || len(p.Messages) != 1 || p.MaxTokens != 9007199254740993 || len(p.Tools) != 1 || p.ToolChoice.Mode != "required" {
				t.Errorf("saw %+v", seen[1+i])
			}
		}
		for _, c := range []struct {
			property, good, bad string
		}{
			{`{"type":"string","enum":["a","b"]}`, `"a"`, `"c"`},
			{`{"type":"string","enum":["a","b"],"enumNames":["A","B"]}`, `"b"`, `"B"`},
			{`{"type":"string","oneOf":[{"const":"a","title":"A"},{"const":"b","title":"B"}]}`, `"b"`, `"B"`},
			{`{"type":"array","minItems":1,"items":{"type":"string","enum":["a","b"]}}`, `["a","b"]`, `["c"]`},
			{`{"type":"array","maxItems":1,"items":{"anyOf":[{"const":"a","title":"A"},{"const":"b","title":"B"}]}}`, `["b"]`, `["a","b"]`},
			{`{"type":"integer","minimum":1}`, `1`, `0`},
		} {
			for _, value := range []string{c.good, c.bad} {
				content = `{"p":` + value + `}`
				s.send(`{"jsonrpc":"2.0","id":3,"method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object","properties":{"p":` + c.property + `}}}}`)
				synctest.Wait()
				if got := s.raw[len(s.raw)-1]; strings.Contains(got, content) != (value == c.good) || strings.Contains(got, "-32603") != (value == c.bad) {
					t.Errorf("%s as %s: %s", value, c.property, got)
				}
			}
		}
	})
}

// A question that the server takes back ends its callback, and is not
// answered.
func TestClientQuestionTakenBack(t *testing.T) {
	shows(t, "cancel.receiver.stop", "cancel.receiver.no-response", "cancel.log", "cancel.receiver.free", "cancel.invalid")
	bubble(t, func(t *testing.T) {
		var causes []string
		opts := ClientOptions{Roots: func(ctx context.Context) ([]Root, error) {
			<-ctx.Done()
			causes = append(causes, context.Cause(ctx).Error())
			return nil, nil
		}}
		cs, s := connected(t, Version20251125, opts, each(`{}`))
		s.send(`{"jsonrpc":"2.0","id":0,`+askDirs[1:], `{"jsonrpc":"2.0","id":"0",`+askDirs[1:], `{"jsonrpc":"2.0","id":0,`+askDirs[1:])
		if a := s.of("response"); len(a) != 1 || a[0].Error == nil || a[0].Error.Code != CodeInvalidRequest {
			t.Errorf("an id used twice: %s", s.raw[len(s.raw)-1])
		}
		for _, params := range []string{`{}`, `7`, `{"requestId":1}`, `{"requestId":null}`, `{"requestId":0.0}`, `{"requestId":7,"reason":null}`, `{"requestId":0,"reason":"enough"}`, `{"requestId":0}`} {
			s.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":` + params + `}`)
		}
		synctest.Wait()
		if got := strings.Join(causes, "; "); got != "mcp: cancelled by the peer: enough" {
			t.Errorf("ended: %s", got)
		}
		if got := len(s.of("response")); got != 1 {
			t.Errorf("%d answers", got)
		}
		if err := cs.Call(t.Context(), methodToolsList, nil, nil); err != nil {
			t.Error(err)
		}
		cs.Close()
		synctest.Wait()
		if len(causes) != 2 || len(s.of("response")) != 1 {
			t.Errorf("at the end: %q, %s", causes, s.methods())
		}
	})
}

// While the client itself answers a question its call does not time out, and
// a callback may call the server.
func TestClientCallbackTakesItsTime(t *testing.T) {
	shows(t, "timeout.set", "errors.local.distinct")
	eachEra(t, func(t *testing.T, version string) {
		var cs *ClientSession
		opts := answering()
		opts.Elicit = func(ctx context.Context, _ *ElicitParams) (*ElicitResult, error) {
			time.Sleep(3 * time.Minute)
			if err := cs.Ping(ctx); err != nil {
				t.Error(err)
			}
			return &ElicitResult{Action: "cancel"}, nil
		}
		var call Message
		cs, _ = connected(t, version, opts, func(m Message) []string {
			switch {
			case m.Method == methodToolsCall && version == Version20251125:
				call = m
				return []string{`{"jsonrpc":"2.0","id":1,` + askForm[1:]}
			case m.Method == methodToolsCall && rawMember(m.Params, "inputResponses") == nil:
				return []string{resultOf(m, `{"resultType":"input_required","inputRequests":{"k":`+askForm+`}}`)}
			case m.Method == "response":
				return []string{resultOf(call, final)}
			}
			return []string{resultOf(m, final)}
		})
		if _, err := cs.CallTool(t.Context(), "x", nil); err != nil {
			t.Error(err)
		}
	})
}

func TestClientPingAndLevel(t *testing.T) {
	shows(t, "base.components.legacy", "base.components.modern", "meta.request.required", "discover.client.choose")
	eachEra(t, func(t *testing.T, version string) {
		cs, s := connected(t, version, ClientOptions{}, each(`{}`))
		if err := cs.Ping(t.Context()); err != nil {
			t.Error(err)
		}
		if err := cs.SetLogLevel(t.Context(), "loud"); err == nil {
			t.Error("a level that there is not")
		}
		if err := cs.SetLogLevel(t.Context(), "warning"); err != nil {
			t.Error(err)
		}
		if err := cs.Call(t.Context(), methodToolsList, nil, nil); err != nil {
			t.Error(err)
		}
		want := "initialize notifications/initialized ping logging/setLevel tools/list"
		if version == Version20260728 {
			want = "server/discover server/discover tools/list"
		}
		if got := s.methods(); got != want {
			t.Errorf("sent %s", got)
		}
		last := s.received()[len(s.raw)-1]
		level := string(rawMember(rawMember(last.Params, "_meta"), metaLogLevel))
		if modern := version == Version20260728; modern != (level == `"warning"`) || !modern && last.Params != nil {
			t.Errorf("sent %s", last.Params)
		}
	})
}

// What a server may hold of its tools, prompts and resources comes as it is.
func TestClientTakesWhatIsUnusual(t *testing.T) {
	shows(t, "tools.input.keywords", "tools.name.lenient", "tools.output.any", "resources.read.multiple", "prompts.client.pages", "prompts.resource-link", "base.result.open-shape")
	bubble(t, func(t *testing.T) {
		schema := `{"type":"object","$defs":{"a":{"$anchor":"x"}},"unevaluatedProperties":false,"x-mine":1.10}`
		cs, _ := connected(t, Version20260728, ClientOptions{}, func(m Message) []string {
			switch m.Method {
			case methodToolsList:
				return []string{resultOf(m, `{"tools":[{"name":"a b/é","inputSchema":`+schema+`,"outputSchema":{"type":"array"},"later":{}}]}`)}
			case methodPromptsList:
				if rawMember(m.Params, "cursor") == nil {
					return []string{resultOf(m, `{"prompts":[{"name":"a"}],"nextCursor":"n"}`)}
				}
				return []string{resultOf(m, `{"prompts":[{"name":"b"}]}`)}
			case methodPromptsGet:
				return []string{resultOf(m, `{"messages":[{"role":"user","content":{"type":"resource_link","uri":"x:y","name":"n"}}]}`)}
			}
			return []string{resultOf(m, `{"contents":[{"uri":"a","text":""},{"uri":"b","blob":"AA=="}]}`)}
		})
		for tool, err := range cs.Tools(t.Context()) {
			if err != nil || tool.Name != "a b/é" || string(tool.InputSchema) != schema || string(tool.OutputSchema) != `{"type":"array"}` {
				t.Errorf("%+v, %v", tool, err)
			}
		}
		names := ""
		for prompt, err := range cs.Prompts(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			names += prompt.Name
		}
		if names != "ab" {
			t.Errorf("prompts %s", names)
		}
		if p, err := cs.GetPrompt(t.Context(), "a", nil); err != nil || p.Messages[0].Content.URI != "x:y" {
			t.Errorf("%+v, %v", p, err)
		}
		if r, err := cs.ReadResource(t.Context(), "a"); err != nil || len(r.Contents) != 2 || r.Contents[1].URI != "b" {
			t.Errorf("%+v, %v", r, err)
		}
	})
}

// Close ends every call that waits, may be called from everywhere and more
// than once, and tells what it did.
func TestClientClose(t *testing.T) {
	shows(t, "lifecycle.errors", "errors.local.distinct")
	eachEra(t, func(t *testing.T, version string) {
		var cs *ClientSession
		opts := ClientOptions{Notify: func(context.Context, string, json.RawMessage) { cs.Close() }}
		cs, s := connected(t, version, opts, silent)
		failed := make(chan error)
		for range 10 {
			go func() { failed <- cs.With(CallOptions{Timeout: -1}).Call(t.Context(), methodToolsList, nil, nil) }()
		}
		synctest.Wait()
		s.send(`{"jsonrpc":"2.0","method":"x"}`)
		go cs.Close()
		cs.Close()
		for range 10 {
			if err := <-failed; !errors.Is(err, ErrClosed) || isPeers(err) {
				t.Errorf("error %v", err)
			}
		}
		if err := cs.Wait(); err != nil {
			t.Error(err)
		}
		if err := cs.Ping(t.Context()); !errors.Is(err, ErrClosed) {
			t.Errorf("afterwards: %v", err)
		}
		if got := len(s.of(notifyCancelled)); got != 0 {
			t.Errorf("%d cancellations", got)
		}
	})
}

// Calls, cancellations, progress and questions of many callers at once,
// against a server of ours.
func TestClientTumult(t *testing.T) {
	shows(t, "cancel.race", "base.id.unique-inflight", "mrtr.client.scope")
	for _, version := range []string{Version20251125, Version20260728} {
		leakCheck(t)
		opts := answering()
		opts.Versions = []string{version}
		cs := pair(t, testServer(nil), opts)
		var wg sync.WaitGroup
		for i := range 200 {
			wg.Add(1)
			go func() {
				defer wg.Done()
				ctx, stop := context.WithTimeout(t.Context(), time.Duration(i%7)*time.Millisecond)
				defer stop()
				var err error
				switch i % 4 {
				case 0:
					_, err = cs.CallTool(ctx, "wait", nil)
				case 1:
					_, err = CallTool[string](t.Context(), cs, "ask", nil)
				case 2:
					_, err = CallTool[string](ctx, cs.With(CallOptions{Progress: func(ProgressParams) {}}), "count", map[string]int{"to": 50})
				case 3:
					_, err = CallTool[addOut](ctx, cs, "add", addIn{1, 2})
				}
				if err != nil && !errors.Is(err, context.DeadlineExceeded) || i%4 == 1 && err != nil {
					t.Error(err)
				}
			}()
		}
		wg.Wait()
		if err := cs.Ping(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// What a client cannot say of itself is refused when it is made.
func TestClientUnsayable(t *testing.T) {
	shows(t, "base.schema.required-fields", "lifecycle.version.client-supported")
	for _, opts := range []ClientOptions{
		{Versions: []string{"2099-01-01"}},
		{Versions: []string{}},
		{Capabilities: &ClientCapabilities{Experimental: map[string]json.RawMessage{"x": json.RawMessage(`{`)}}},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%+v was taken", opts)
				}
			}()
			NewClient(Implementation{Name: "c", Version: "1"}, &opts)
		}()
	}
}

// The server ends a subscription by cancelling it, with a result or without;
// what was told before is not lost when a loop over it was left.
func TestClientListenEndedByCancel(t *testing.T) {
	shows(t, "cancel.target.client", "cancel.invalid")
	bubble(t, func(t *testing.T) {
		cs, s := connected(t, Version20260728, ClientOptions{}, func(m Message) []string {
			of := `"_meta":{"io.modelcontextprotocol/subscriptionId":` + m.ID.String() + `}`
			if m.Method != methodListen {
				return nil
			}
			return []string{`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"toolsListChanged":true,"promptsListChanged":true},` + of + `}}`,
				`{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{` + of + `}}`,
				`{"jsonrpc":"2.0","method":"notifications/prompts/list_changed","params":{` + of + `}}`,
				`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`,
				`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + m.ID.String() + `}}`}
		})
		sub, err := cs.Listen(t.Context(), SubscriptionFilter{ToolsListChanged: true, PromptsListChanged: true})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		var seen []string
		for range 3 {
			for c, err := range sub.Events(t.Context()) {
				if err != nil {
					t.Error(err)
				}
				seen = append(seen, c.Method)
				break
			}
		}
		if got := strings.Join(seen, " "); got != notifyToolsChanged+" "+notifyPromptsChanged {
			t.Errorf("saw %s", got)
		}
		sub.Close()
		if got := s.methods(); got != "server/discover subscriptions/listen" {
			t.Errorf("sent %s", got)
		}
	})
}

// A callback that ends its goroutine, as FailNow of a test does, fails the
// call that it was to help, and nothing waits for it.
func TestClientCallbackThatDoesNotReturn(t *testing.T) {
	eachEra(t, func(t *testing.T, version string) {
		opts := ClientOptions{Timeout: -1, Elicit: func(context.Context, *ElicitParams) (*ElicitResult, error) {
			runtime.Goexit()
			return nil, nil
		}}
		question := `"method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object","properties":{}}}`
		var call Message
		cs, _ := connected(t, version, opts, func(m Message) []string {
			switch {
			case m.Error != nil:
				return []string{resultOf(call, `{"content":[],"isError":true}`)}
			case m.Method != methodToolsCall:
				return nil
			case version == Version20251125:
				call = m
				return []string{`{"jsonrpc":"2.0","id":"q",` + question + `}`}
			}
			return []string{resultOf(m, `{"resultType":"input_required","inputRequests":{"k":{`+question+`}}}`)}
		})
		if r, err := cs.CallTool(t.Context(), "x", nil); err == nil && !r.IsError {
			t.Errorf("result %v, error %v", r, err)
		}
	})
}
