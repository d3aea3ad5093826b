package mcp

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math"
	"strings"
	"sync"
	"testing"
)

// lockedBuffer is where a logger writes while a test reads.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

type panics struct{}

func (panics) MarshalJSON() ([]byte, error) { panic("no") }

type fails struct{}

func (fails) MarshalJSON() ([]byte, error) { return nil, errors.New("no form") }

type breaks struct{}

func (breaks) MarshalJSON() ([]byte, error) { return []byte("{\n\"a\":\n1}"), nil }

func (breaks) LogValue() slog.Value { return slog.AnyValue(fails{}) }

// Whatever a handler logs, each message is one frame of good JSON in which no
// member is there twice.
func TestLoggedDataIsGoodJSON(t *testing.T) {
	shows(t, "logging.validate")
	leakCheck(t)
	values := []any{math.NaN(), math.Inf(1), make(chan int), func() {}, "\xff", "a\nb\u2028", fails{}, breaks{}, map[string]any{"x": make(chan int)}, []any{nil}, panics{}}
	s := emptyServer(nil)
	rawTool(s, "log", func(_ context.Context, req *Request) (*CallToolResult, error) {
		for _, v := range values {
			func() {
				defer func() { recover() }() // of the value's own code
				req.Log().Info("text", "v", v)
			}()
		}
		log := req.Log().With("msg", 1, "a", 2)
		log.Info("text", "a", 3, slog.Group("g", "b", 4, "b", int64(12345678901234567)), "a", 5)
		return nil, nil
	})
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		c, _ := dialServer(t, s)
		frame := request("1", "tools/call", `"name":"log"`)
		if version == "2026-07-28" {
			frame = request("1", "tools/call", `"name":"log","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/logLevel":"info"}`)
		} else {
			c.initialize(version, "{}")
		}
		got, n := c.call(frame), 0
		for ; memberOf(t, got, "result") == ""; n++ {
			fits(t, got, `{"method":"notifications/message","params":{"level":"info","data":{}}}`)
			if name := repeatedMember([]byte(got)); name != nil || strings.Contains(got, "\n") {
				t.Errorf("%s twice, or a line end: %s", name, got)
			}
			if n == len(values) || n == len(values)-1 && strings.Contains(got, `"g"`) {
				fits(t, got, `{"params":{"data":{"a":5,"g":{"b":12345678901234567}}}}`)
			}
			got = c.next()
		}
		if n < len(values) {
			t.Errorf("%s: %d messages", version, n)
		}
	}
}

// A handler in a tight loop costs a session no more than so many messages; the
// server's logger hears of it.
func TestLogMessagesAreLimited(t *testing.T) {
	shows(t, "logging.rate-limit")
	leakCheck(t)
	log := new(lockedBuffer)
	s := emptyServer(&ServerOptions{Logger: slog.New(slog.NewTextHandler(log, nil))})
	dropped := 0
	rawTool(s, "log", func(_ context.Context, req *Request) (*CallToolResult, error) {
		for ; !strings.Contains(log.String(), "are left out"); dropped++ { // but for a second's beginning, after maxLogRate
			req.Log().Info("text")
		}
		ss := req.Session()
		ss.mu.Lock()
		ss.logSecond = ss.logSecond.Add(-2e9) // the second is over
		ss.mu.Unlock()
		req.Log().Info("after")
		return nil, nil
	})
	c, ask := opened(t, s, "2025-11-25", "{}")
	n, last := 0, ""
	for got := ask("1", "tools/call", `"name":"log"`); memberOf(t, got, "result") == ""; got = c.next() {
		n, last = n+1, got
	}
	if n != dropped || n < maxLogRate {
		t.Errorf("%d messages of %d", n, dropped)
	}
	fits(t, last, `{"params":{"data":{"msg":"after"}}}`)
	if !strings.Contains(log.String(), "were left out") || !strings.Contains(log.String(), "count=1") {
		t.Error(log)
	}
}

// What the library says by itself has nothing in it of what peers and programs
// confided to it.
func TestNoSecretsInLogs(t *testing.T) {
	shows(t, "logging.no-secrets", "logging.error.internal")
	leakCheck(t)
	log := new(lockedBuffer)
	s := testServer(&ServerOptions{Logger: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})), StateKeys: [][]byte{[]byte("SECRET of 16 bytes")}})
	s.Handle("logging/setLevel", func(context.Context, *Request) (any, error) { return nil, errors.New("the disk is full") })
	c, ask := opened(t, s, "2025-11-25", `{"experimental":{"SECRET":{}}}`)
	fits(t, ask("1", "logging/setLevel", `"level":"info"`), `{"error":{"code":-32603,"message":"internal error"}}`)
	for _, frame := range []string{
		request("2", "tools/call", `"name":"add","arguments":{"a":"SECRET"}`), request("2", "tools/call", `"name":"fail","arguments":{"SECRET":1}`),
		request("2", "tools/call", `"name":"add","_meta":{"progressToken":"SECRET","example.com/token":"SECRET"}`), request("2", "resources/read", `"uri":"test://user:SECRET@x"`),
		request("2", "prompts/get", `"name":"greet","arguments":{"name":"SECRET"}`), request("2", "no/such", `"a":"SECRET"`), `{"jsonrpc":"2.0","id":2,"method":"ping","params":["SECRET"]}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{"cursor":"SECRET"}}`, `{"SECRET`,
		modernRequest("2", "tools/call", `"name":"ask","requestState":"SECRET","inputResponses":{"name":{"action":"SECRET"}}`, `{"elicitation":{}}`),
	} {
		c.call(frame)
	}
	c.send(`{"jsonrpc":"2.0","id":77,"result":{"a":"SECRET"}}`, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"SECRET","progress":"SECRET"}}`, `{"jsonrpc":"2.0","method":"notifications/x","params":{"a":"SECRET"}}`)
	c.alive()
	if strings.Contains(log.String(), "SECRET") {
		t.Error(log)
	}
	if !strings.Contains(log.String(), "the disk is full") { // the program's own words are for its own log
		t.Error(log)
	}
}
