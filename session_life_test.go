//go:build go1.25

package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// These tests are about the life of a session, on virtual time: how it is kept
// alive, how it ends, and in which order things come.

// logText is a logger's output.
type logText struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logText) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

func (l *logText) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), text)
}

// A tape is written by many goroutines.
type tape struct {
	mu    sync.Mutex
	items []string
}

func (l *tape) add(item string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.items = append(l.items, item)
}

func (l *tape) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.items, " ")
}

// An ender is what both kinds of session have for their end.
type ender interface {
	OnClose(f func())
	Close() error
	Wait() error
}

// eachSide runs f with a session of either side, and with the far end of its
// connection.
func eachSide(t *testing.T, f func(t *testing.T, s ender, peer Conn, log *logText)) {
	t.Run("server", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			log := new(logText)
			c, ss := dialServer(t, emptyServer(&ServerOptions{Logger: log.logger()}))
			f(t, ss, c.conn, log)
		})
	})
	t.Run("client", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			log := new(logText)
			cs, s := connected(t, Version20251125, ClientOptions{Logger: log.logger()}, silent)
			f(t, cs, s.conn, log)
		})
	})
}

// took runs f and returns the virtual time it took.
func took(f func()) time.Duration {
	start := time.Now()
	f()
	return time.Since(start)
}

func TestOnCloseOrder(t *testing.T) {
	eachSide(t, func(t *testing.T, s ender, _ Conn, log *logText) {
		var ran tape
		for _, name := range []string{"a", "b", "c", "d"} {
			s.OnClose(func() {
				ran.add(name)
				switch name {
				case "b":
					panic("secret")
				case "c":
					runtime.Goexit()
				}
			})
		}
		s.Close()
		s.Close()
		if got := ran.String(); got != "d c b a" {
			t.Errorf("ran %s", got)
		}
		s.OnClose(func() { ran.add("late"); panic("late") })
		if got := ran.String(); got != "d c b a late" {
			t.Errorf("ran %s", got)
		}
		if log.count("panic in OnClose") != 2 || log.count("clean-up failed") != 1 {
			t.Errorf("logged %s", log.text.String())
		}
	})
}

func TestOnCloseAfterTheConnection(t *testing.T) {
	eachSide(t, func(t *testing.T, s ender, peer Conn, _ *logText) {
		ended := make(chan error, 1)
		s.OnClose(func() {
			_, err := peer.Read(t.Context())
			for err == nil { // what was written before
				_, err = peer.Read(t.Context())
			}
			ended <- err
		})
		s.Close()
		select {
		case err := <-ended:
			if err != io.EOF && !errors.Is(err, ErrClosed) {
				t.Errorf("the peer sees %v", err)
			}
		default:
			t.Error("Close did not wait")
		}
	})
}

func TestOnCloseWhenThePeerEnds(t *testing.T) {
	eachSide(t, func(t *testing.T, s ender, peer Conn, _ *logText) {
		var ran tape
		s.OnClose(func() { ran.add("x") })
		peer.Close()
		if err := s.Wait(); err != nil || ran.String() != "x" {
			t.Errorf("ran %q, Wait: %v", ran.String(), err)
		}
	})
}

// What hangs costs five seconds, once, and whoever closes from within does not
// wait for itself.
func TestOnCloseBounded(t *testing.T) {
	eachSide(t, func(t *testing.T, s ender, _ Conn, log *logText) {
		release := make(chan struct{})
		var ran tape
		s.OnClose(func() { ran.add("after") })
		s.OnClose(func() { <-release })
		s.OnClose(func() {
			if d := took(func() { s.Close(); s.Wait() }); d != 0 {
				t.Errorf("Close from within took %v", d)
			}
		})
		if d := took(func() { s.Close() }); d != 5*time.Second || log.count("takes too long") != 1 {
			t.Errorf("Close took %v, logged %s", d, log.text.String())
		}
		if d := took(func() { s.Close(); s.Wait() }); d != 0 {
			t.Errorf("Close of what is closed took %v", d)
		}
		close(release)
		synctest.Wait()
		if got := ran.String(); got != "after" {
			t.Errorf("ran %q", got)
		}
	})
}

// Close from inside a handler or a callback returns, with the clean-up done.
func TestCloseFromWithin(t *testing.T) {
	var ran tape
	t.Run("handler", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			s := emptyServer(nil)
			closed := make(chan time.Duration, 1)
			rawTool(s, "bye", func(_ context.Context, req *Request) (*CallToolResult, error) {
				req.Session().OnClose(func() { ran.add("handler") })
				closed <- took(func() { req.Session().Close() })
				return nil, nil
			})
			c, ss := dialServer(t, s)
			c.send(modernRequest("1", methodToolsCall, `"name":"bye"`, "{}"))
			if d := <-closed; d != 0 || ss.Wait() != nil {
				t.Errorf("took %v", d)
			}
		})
	})
	for _, where := range []string{"log", "progress", "elicit"} {
		t.Run(where, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				var cs *ClientSession
				closed := make(chan time.Duration, 1)
				bye := func() {
					cs.OnClose(func() { ran.add(where) })
					closed <- took(func() { cs.Close() })
				}
				opts := ClientOptions{
					Log: func(context.Context, *LogParams) { bye() },
					Elicit: func(context.Context, *ElicitParams) (*ElicitResult, error) {
						bye()
						return nil, errors.New("gone")
					},
				}
				cs, s := connected(t, Version20251125, opts, func(m Message) []string {
					if m.Method == methodToolsCall {
						return []string{`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":` + m.ID.String() + `,"progress":1}}`}
					}
					return nil
				})
				switch where {
				case "log":
					s.send(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}`)
				case "elicit":
					s.send(`{"jsonrpc":"2.0","id":1,` + askForm[1:])
				case "progress":
					if _, err := cs.With(CallOptions{Progress: func(ProgressParams) { bye() }}).CallTool(t.Context(), "t", nil); !errors.Is(err, ErrClosed) {
						t.Errorf("the call: %v", err)
					}
				}
				if d := <-closed; d != 0 || cs.Wait() != nil {
					t.Errorf("took %v", d)
				}
			})
		})
	}
	if got := ran.String(); got != "handler log progress elicit" {
		t.Errorf("cleaned up: %s", got)
	}
}

// Many close at once, while the peer ends, too.
func TestCloseConcurrently(t *testing.T) {
	eachSide(t, func(t *testing.T, s ender, peer Conn, _ *logText) {
		var ran tape
		s.OnClose(func() { ran.add("once") })
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				if i == 10 {
					peer.Close()
				}
				s.Close()
				s.Wait()
				if ran.String() != "once" {
					t.Errorf("Close returned with %q done", ran.String())
				}
			})
		}
		wg.Wait()
	})
}

var legacyVersions = []string{Version20241105, Version20250326, Version20250618, Version20251125}

// pings returns how many pings a scripted server got.
func (s *scripted) pings() int { return len(s.of(methodPing)) }

func TestClientKeepAlive(t *testing.T) {
	shows(t, "ping.periodic", "ping.configurable", "ping.not-excessive")
	for _, version := range legacyVersions {
		for _, c := range []struct {
			name    string
			every   time.Duration
			chatter time.Duration // between notifications of the server
			pings   int           // within 65 seconds
		}{
			// in the first period there was the handshake
			{"never by default", 0, 0, 0}, {"every 10s", 10 * time.Second, 0, 5}, {"every 20s", 20 * time.Second, 0, 2},
			{"a server that talks", 10 * time.Second, 3 * time.Second, 0},
		} {
			t.Run(version+" "+c.name, func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					cs, s := connected(t, version, ClientOptions{KeepAlive: c.every}, each(`{}`))
					for end := time.Now().Add(65 * time.Second); time.Now().Before(end); {
						if c.chatter == 0 {
							time.Sleep(time.Until(end))
							break
						}
						time.Sleep(c.chatter)
						s.send(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
					}
					if got := s.pings(); got != c.pings {
						t.Errorf("%d pings", got)
					}
					if err := cs.Ping(t.Context()); err != nil {
						t.Error(err)
					}
				})
			})
		}
	}
	t.Run("never at 2026-07-28", func(t *testing.T) {
		shows(t, "ping.removed")
		bubble(t, func(t *testing.T) {
			cs, s := connected(t, Version20260728, ClientOptions{KeepAlive: time.Second}, each(`{}`))
			time.Sleep(time.Hour)
			if got := s.methods(); got != methodDiscover {
				t.Errorf("sent %s", got)
			}
			cs.Close()
		})
	})
}

// A peer that is silent is lost after three periods; that is logged, and an
// error of the session.
func TestKeepAliveLosesThePeer(t *testing.T) {
	shows(t, "ping.timeout", "ping.timeout-failure", "ping.log")
	check := func(t *testing.T, log *logText, wait func() error) {
		var err error
		if d := took(func() { err = wait() }); err == nil || d < 30*time.Second || d > 40*time.Second {
			t.Errorf("after %v: %v", d, err)
		}
		if log.count("no sign of life") < 2 {
			t.Errorf("logged %s", log.text.String())
		}
	}
	t.Run("client", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			log := new(logText)
			cs, s := connected(t, Version20251125, ClientOptions{KeepAlive: 10 * time.Second, Logger: log.logger()}, silent)
			check(t, log, cs.Wait)
			if err := cs.Ping(t.Context()); !errors.Is(err, ErrClosed) || err.Error() != "mcp: ping: session closed: no sign of life from the peer within 30s" {
				t.Errorf("a call after that: %v", err)
			}
			if got := s.pings(); got != 1 { // the rest waits for its answer
				t.Errorf("%d pings", got)
			}
		})
	})
	t.Run("server", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			log := new(logText)
			c, ss := dialServer(t, emptyServer(&ServerOptions{KeepAlive: 10 * time.Second, Logger: log.logger()}))
			c.initialize(Version20251125, "{}")
			check(t, log, ss.Wait)
		})
	})
}

func TestServerKeepAlive(t *testing.T) {
	shows(t, "ping.periodic", "ping.configurable")
	for _, version := range legacyVersions {
		t.Run(version, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				c, ss := dialServer(t, emptyServer(&ServerOptions{KeepAlive: 4 * time.Second}))
				time.Sleep(time.Minute) // nobody is pinged before initialize
				c.initialize(version, "{}")
				for i, after := range []time.Duration{8, 4, 4, 4} { // in the first period there was the handshake
					var ping string
					if d := took(func() { ping = c.next() }); d != after*time.Second {
						t.Errorf("ping %d after %v", i, d)
					}
					fits(t, ping, `{"jsonrpc":"2.0","method":"ping"}`)
					c.send(`{"jsonrpc":"2.0","id":` + memberOf(t, ping, "id") + `,"result":{}}`)
				}
				ss.Close()
			})
		})
	}
}

// A peer that works for us, or waits for our work, may be silent; one that has
// no ping is not asked again; and Close may come with a ping.
func TestKeepAliveSparesThePeer(t *testing.T) {
	const long = 10 * time.Minute
	opts := ClientOptions{KeepAlive: time.Second, Timeout: -1}
	t.Run("it works for us", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			cs, s := connected(t, Version20251125, opts, silent)
			go func() {
				time.Sleep(long)
				s.send(resultOf(s.of(methodToolsCall)[0], `{"content":[]}`))
			}()
			if _, err := cs.CallTool(t.Context(), "slow", nil); err != nil {
				t.Error(err)
			}
		})
	})
	t.Run("it waits for us", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			opts := opts
			asked := make(chan struct{})
			opts.Elicit = func(context.Context, *ElicitParams) (*ElicitResult, error) {
				defer close(asked)
				time.Sleep(long)
				return &ElicitResult{Action: "decline"}, nil
			}
			_, s := connected(t, Version20251125, opts, silent)
			s.send(`{"jsonrpc":"2.0","id":1,` + askForm[1:])
			<-asked
			if len(s.of("response")) != 1 {
				t.Errorf("sent %s", s.methods())
			}
		})
	})
	t.Run("it has no ping", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			cs, s := connected(t, Version20251125, opts, func(m Message) []string {
				if m.Method == methodPing {
					return []string{errorOf(m, CodeMethodNotFound)}
				}
				return each(`{"content":[]}`)(m)
			})
			time.Sleep(long)
			if _, err := cs.CallTool(t.Context(), "t", nil); err != nil || s.pings() != 1 {
				t.Errorf("%d pings, %v", s.pings(), err)
			}
		})
	})
	t.Run("it answers late", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			cs, _ := connected(t, Version20251125, opts, func(m Message) []string {
				if m.IsRequest() {
					time.Sleep(1900 * time.Millisecond)
				}
				return each(`{}`)(m)
			})
			time.Sleep(long)
			if err := cs.Ping(t.Context()); err != nil {
				t.Error(err)
			}
			cs.Close()
			time.Sleep(2 * time.Second) // for a ping that is being answered
		})
	})
	t.Run("we close", func(t *testing.T) {
		for range 20 {
			bubble(t, func(t *testing.T) {
				cs, _ := connected(t, Version20251125, opts, each(`{}`))
				time.Sleep(time.Second)
				if err := cs.Close(); err != nil || cs.Wait() != nil {
					t.Error(err, cs.Wait())
				}
			})
		}
	})
}

// heardStray writes down what a Stray option hears.
func heardStray(l *tape) func(m *Message, err error) {
	return func(m *Message, err error) {
		if m == nil {
			l.add(fmt.Sprintf("nil: %v;", err))
			return
		}
		code := 0
		if m.Error != nil {
			code = m.Error.Code
		}
		l.add(fmt.Sprintf("%s %s %s %d: %v;", m.ID, m.Method, m.Result, code, err))
	}
}

var strayFrames = []struct{ frame, server, client string }{
	{`{"jsonrpc":"2.0","id":77,"result":{"a":1}}`, `77  {"a":1} 0: ` + errNotAsked.Error(), `77  {"a":1} 0: ` + errNotAsked.Error()},
	{`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"what?"}}`, "   -32700: " + errNotAsked.Error(), "   -32700: " + errNotAsked.Error()},
	{`{"jsonrpc":"2.0","error":{"code":-32600,"message":"what?"}}`, "   -32600: " + errNotAsked.Error(), "   -32600: " + errNotAsked.Error()},
	{`{"jsonrpc":"2.0","id":77,"result":{},"error":{}}`, "77  {} 0: mcp: a message has one of", "77  {} 0: mcp: a message has one of"},
	{`{`, "nil: mcp: parse error", "nil: mcp: parse error"},
	{`[`, "nil: mcp: parse error", "nil: mcp: parse error"},
	{`[1]`, "nil: mcp: batches are not part of", "nil: mcp: batches are not part of"},
	{`7`, "nil: mcp: a message must be a JSON object", "nil: mcp: a message must be a JSON object"},
	{"\"\xff\"", "nil: mcp: parse error: invalid UTF-8", "nil: mcp: parse error: invalid UTF-8"},
	{`{"jsonrpc":"1.0","id":3,"method":"x"}`, `3 x  0: mcp: jsonrpc must be "2.0"`, `3 x  0: mcp: jsonrpc must be "2.0"`},
	{`{"jsonrpc":"2.0","method":"notifications/x","params":[]}`, " notifications/x  0: mcp: params must be an object", " notifications/x  0: mcp: params must be an object"},
}

func TestStray(t *testing.T) {
	for _, c := range strayFrames {
		t.Run(c.frame, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				var l tape
				wire, _ := dialServer(t, emptyServer(&ServerOptions{Stray: heardStray(&l)}))
				wire.initialize(Version20251125, "{}")
				wire.send(c.frame)
				synctest.Wait()
				if got := l.String(); !strings.HasPrefix(got, c.server) || strings.Count(got, ";") != 1 {
					t.Errorf("the server heard %s", got)
				}
				l = tape{}
				_, s := connected(t, Version20251125, ClientOptions{Stray: heardStray(&l)}, silent)
				s.send(c.frame)
				synctest.Wait()
				if got := l.String(); !strings.HasPrefix(got, c.client) || strings.Count(got, ";") != 1 {
					t.Errorf("the client heard %s", got)
				}
			})
		})
	}
	t.Run("a request to a modern client", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			var l tape
			_, s := connected(t, Version20260728, ClientOptions{Stray: heardStray(&l)}, silent)
			s.send(`{"jsonrpc":"2.0","id":1,` + askForm[1:])
			synctest.Wait()
			if got := l.String(); !strings.HasPrefix(got, "1 elicitation/create ") {
				t.Errorf("heard %s", got)
			}
		})
	})
}

// Stray messages come in order with notifications, and a Stray that fails does
// not stop them.
func TestStrayInOrder(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var l tape
		opts := ClientOptions{
			Notify: func(_ context.Context, method string, _ json.RawMessage) { l.add(method) },
			Stray: func(m *Message, _ error) {
				if l.add("stray"); m == nil {
					panic("secret")
				}
				runtime.Goexit()
			},
		}
		cs, s := connected(t, Version20251125, opts, silent)
		s.send(`{"jsonrpc":"2.0","method":"a"}`, `{`, `{"jsonrpc":"2.0","method":"b"}`, `{"jsonrpc":"2.0","id":9,"result":{}}`, `{"jsonrpc":"2.0","method":"c"}`)
		synctest.Wait()
		if got := l.String(); got != "a stray b stray c" {
			t.Errorf("heard %s", got)
		}
		cs.Close()
	})
}

func logFrame(n int) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":%d}}`, n)
}

// What was logged before the answer is there when the call returns.
func TestNotificationsBeforeTheAnswer(t *testing.T) {
	shows(t, "patterns.request-scoped")
	eachEra(t, func(t *testing.T, version string) {
		var l tape
		opts := ClientOptions{Log: func(_ context.Context, p *LogParams) {
			time.Sleep(10 * time.Millisecond)
			l.add(string(p.Data))
		}}
		cs, _ := connected(t, version, opts, func(m Message) []string {
			return []string{logFrame(1), logFrame(2), logFrame(3), resultOf(m, `{"content":[]}`), logFrame(4)}
		})
		if _, err := cs.CallTool(t.Context(), "t", nil); err != nil || l.String() != "1 2 3" {
			t.Errorf("%v, with %q heard", err, l.String())
		}
	})
}

// A callback that waits for the very caller, or calls itself, costs a call a
// moment at most, and the next ones nothing.
func TestCallbackThatWaitsForTheCaller(t *testing.T) {
	bubble(t, func(t *testing.T) {
		logged := make(chan string)
		opts := ClientOptions{Log: func(_ context.Context, p *LogParams) { logged <- string(p.Data) }}
		cs, _ := connected(t, Version20251125, opts, func(m Message) []string {
			return []string{logFrame(1), resultOf(m, `{}`)}
		})
		for i, limit := range []time.Duration{settleTime, 0, 0} {
			if d := took(func() { cs.Ping(t.Context()) }); d > limit {
				t.Errorf("call %d took %v", i, d)
			}
		}
		for range 3 {
			<-logged
		}
	})
	bubble(t, func(t *testing.T) {
		var cs *ClientSession
		spent := make(chan time.Duration, 9)
		opts := ClientOptions{Notify: func(ctx context.Context, method string, _ json.RawMessage) {
			if method == "go" {
				spent <- took(func() { cs.Ping(ctx) })
			}
		}}
		cs, s := connected(t, Version20251125, opts, func(m Message) []string {
			return []string{`{"jsonrpc":"2.0","method":"other"}`, resultOf(m, `{}`)}
		})
		s.send(`{"jsonrpc":"2.0","method":"go"}`)
		if d := <-spent; d != 0 {
			t.Errorf("a call from inside took %v", d)
		}
		cs.Close()
	})
}

// What came before the end of a session is still heard, whoever ended it.
func TestNotificationsBeforeTheEnd(t *testing.T) {
	for _, end := range []string{"close", "EOF"} {
		t.Run(end, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				var l tape
				first := make(chan struct{})
				opts := ClientOptions{Log: func(ctx context.Context, p *LogParams) {
					if string(p.Data) == "1" {
						close(first)
					}
					time.Sleep(100 * time.Millisecond)
					l.add(string(p.Data))
				}}
				cs, s := connected(t, Version20251125, opts, silent)
				s.send(logFrame(1), logFrame(2), logFrame(3))
				<-first
				synctest.Wait()
				if end == "close" {
					cs.Close()
				} else {
					s.conn.Close()
				}
				cs.Wait()
				if got := l.String(); got != "1 2 3" {
					t.Errorf("heard %s", got)
				}
			})
		})
	}
	t.Run("bounded", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			release := make(chan struct{})
			defer close(release)
			cs, s := connected(t, Version20251125, ClientOptions{Log: func(context.Context, *LogParams) { <-release }}, silent)
			s.send(logFrame(1), logFrame(2))
			synctest.Wait()
			if d := took(func() { cs.Close() }); d != noteTime {
				t.Errorf("Close took %v", d)
			}
		})
	})
}

// A handler whose peer does not read can be cancelled, and does not hold up
// who reads.
func TestCancelOfAWedgedRequest(t *testing.T) {
	shows(t, "cancel.receiver.stop", "cancel.receiver.free")
	bubble(t, func(t *testing.T) {
		s := emptyServer(nil)
		stopped := make(chan error, 1)
		rawTool(s, "flood", func(ctx context.Context, req *Request) (*CallToolResult, error) {
			big := map[string]string{"x": strings.Repeat("x", 1<<20)}
			for {
				if err := req.notify(ctx, "notifications/big", big); err != nil {
					stopped <- err
					return nil, err
				}
			}
		})
		c, _ := dialServer(t, s)
		c.initialize(Version20251125, "{}")
		c.send(request("1", methodToolsCall, `"name":"flood"`))
		synctest.Wait() // nobody reads, so the handler waits
		select {
		case err := <-stopped:
			t.Fatal("the handler does not wait:", err)
		default:
		}
		c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
		if err := <-stopped; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

// progressValues returns the values of the progress notices before the answer.
func progressValues(t *testing.T, c *wireClient) (values []string, answer string) {
	t.Helper()
	for {
		frame := c.next()
		if memberOf(t, frame, "method") != `"notifications/progress"` {
			return values, frame
		}
		values = append(values, memberOf(t, frame, "params", "progress"))
	}
}

// A burst of progress is thinned out: the first notices leave at once, the
// newest before the answer, and what is held while the handler goes on working
// leaves soon.
func TestProgressRateLimit(t *testing.T) {
	shows(t, "progress.rate-limit", "progress.increasing", "progress.stop")
	for _, c := range []struct {
		name        string
		every       time.Duration // between reports
		n           int
		least, most int
	}{
		{"few", 0, progressBurst, progressBurst, progressBurst},
		{"a tight loop", 0, 10000, progressBurst + 1, progressBurst + 1},
		{"1 ms apart", time.Millisecond, 1000, 100, 100 + progressBurst + 1},
		{"slow", progressEvery, 200, 200, 200},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := emptyServer(nil)
				rawTool(s, "t", func(ctx context.Context, req *Request) (*CallToolResult, error) {
					for i := range c.n {
						if err := req.Progress(ctx, ProgressParams{Progress: float64(i + 1)}); err != nil {
							return nil, err
						}
						time.Sleep(c.every)
					}
					return textResult("done"), nil
				})
				wire, _ := dialServer(t, s)
				wire.send(modernRequest("1", methodToolsCall, `"name":"t"`, `{},"progressToken":"p"`))
				values, answer := progressValues(t, wire)
				fits(t, answer, `{"id":1,"result":{}}`)
				if n := len(values); n < c.least || n > c.most || values[0] != "1" || values[n-1] != fmt.Sprint(c.n) {
					t.Errorf("%d notices: %v", n, values)
				}
				if !slices.IsSortedFunc(values, func(a, b string) int { return len(a)*100000 - len(b)*100000 + strings.Compare(a, b) }) {
					t.Errorf("out of order: %v", values)
				}
				time.Sleep(time.Second)
				wire.send(modernRequest("2", "no/such", "", `{}`))
				fits(t, wire.next(), `{"id":2,"error":{}}`) // nothing came late
			})
		})
	}
	t.Run("held while the work goes on", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			s := emptyServer(nil)
			rawTool(s, "t", func(ctx context.Context, req *Request) (*CallToolResult, error) {
				for i := range 100 {
					req.Progress(ctx, ProgressParams{Progress: float64(i + 1)})
				}
				time.Sleep(5 * time.Second)
				return textResult("done"), nil
			})
			wire, _ := dialServer(t, s)
			wire.send(modernRequest("1", methodToolsCall, `"name":"t"`, `{},"progressToken":"p"`))
			if d := took(func() {
				for range progressBurst {
					wire.next()
				}
				if got := memberOf(t, wire.next(), "params", "progress"); got != "100" {
					t.Errorf("then came %s", got)
				}
			}); d > 2*progressEvery {
				t.Errorf("took %v", d)
			}
			fits(t, wire.next(), `{"id":1,"result":{}}`)
		})
	})
}

// What is held is not sent once the request was cancelled.
func TestHeldProgressOfACancelledRequest(t *testing.T) {
	shows(t, "progress.stop", "cancel.receiver.no-response")
	bubble(t, func(t *testing.T) {
		s := emptyServer(nil)
		rawTool(s, "t", func(ctx context.Context, req *Request) (*CallToolResult, error) {
			for i := range 100 {
				req.Progress(ctx, ProgressParams{Progress: float64(i + 1)})
			}
			<-ctx.Done()
			return nil, ctx.Err()
		})
		wire, _ := dialServer(t, s)
		wire.initialize(Version20251125, "{}")
		wire.send(request("1", methodToolsCall, `"name":"t","_meta":{"progressToken":1}`),
			`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
		time.Sleep(time.Second)
		wire.send(`{"jsonrpc":"2.0","id":2,"method":"ping"}`)
		values, answer := progressValues(t, wire)
		fits(t, answer, `{"id":2,"result":{}}`)
		if len(values) > progressBurst {
			t.Errorf("%d notices: %v", len(values), values)
		}
	})
}
