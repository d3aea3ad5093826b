//go:build go1.25

package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
	s := &scripted{conn: conn}
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

const discovered = `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{},"ttlMs":0,"cacheScope":"private","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}}}`

func initializedAs(version string) string {
	return `{"protocolVersion":"` + version + `","capabilities":{},"serverInfo":{"name":"s","version":"1"}}`
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
		mine := Meta{"a": json.RawMessage(`{"n":9007199254740993}`), metaProtocolVersion: json.RawMessage(`"x"`), "b": json.RawMessage(`1`)}
		params := json.RawMessage(`{"cursor":"c","_meta":{"b":2,"c":3,"io.modelcontextprotocol/clientInfo":7}}`)
		if err := cs.With(CallOptions{Meta: mine, Progress: func(ProgressParams) {}}).Call(t.Context(), methodToolsList, params, nil); err != nil {
			t.Fatal(err)
		}
		if len(mine) != 3 || string(mine[metaProtocolVersion]) != `"x"` {
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
