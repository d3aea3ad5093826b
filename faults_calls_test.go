//go:build go1.25

package mcp

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Faults of cancellation, progress and timeouts.

// TestFault11CancelReachesEveryHandler: whatever serves a request loses its
// context when the peer cancels it and when the session ends, can tell the
// two apart, and is not answered.
func TestFault11CancelReachesEveryHandler(t *testing.T) {
	shows(t, "cancel.receiver.stop", "cancel.receiver.no-response", "stdio.cancel.silent", "stdio.cancel.stop")
	leakCheck(t)
	began, causes := make(chan bool), make(chan error, 1)
	wait := func(ctx context.Context) error {
		began <- true
		<-ctx.Done()
		causes <- context.Cause(ctx)
		return nil
	}
	s := emptyServer(&ServerOptions{Complete: func(ctx context.Context, _ *Request, _ *CompleteParams) (*CompleteResult, error) {
		return nil, wait(ctx)
	}})
	rawTool(s, "t", func(ctx context.Context, _ *Request) (*CallToolResult, error) { return nil, wait(ctx) })
	s.AddPrompt(Prompt{Name: "t"}, func(ctx context.Context, _ *Request) (*GetPromptResult, error) { return &GetPromptResult{}, wait(ctx) })
	s.AddResource(Resource{URI: "x:t", Name: "t"}, func(ctx context.Context, _ *Request) (*ReadResourceResult, error) {
		return &ReadResourceResult{}, wait(ctx)
	})
	s.Handle("x/t", func(ctx context.Context, _ *Request) (any, error) { return nil, wait(ctx) })
	s.Use(func(next Handler) Handler {
		return func(ctx context.Context, req *Request) (any, error) {
			if req.Method == "x/middleware" {
				return nil, wait(ctx)
			}
			return next(ctx, req)
		}
	})
	for _, call := range []serverCall{
		{methodToolsCall, `"name":"t"`}, {methodPromptsGet, `"name":"t"`}, {methodResourcesRead, `"uri":"x:t"`}, {"x/t", ""}, {"x/middleware", ""},
		{methodComplete, `"ref":{"type":"ref/prompt","name":"t"},"argument":{"name":"a","value":""}`},
	} {
		for _, frame := range []string{request("5", call.method, call.params), modernRequest("5", call.method, call.params, "{}")} {
			c, ss := dialServer(t, s)
			c.initialize("2025-11-25", "{}")
			c.send(frame)
			<-began
			c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5,"reason":"x"}}`)
			if cause := soon(t, "the cancellation of "+call.method, causes); !errors.Is(cause, context.Canceled) || errors.Is(cause, ErrClosed) {
				t.Errorf("%s: cancelled by the peer: %v", call.method, cause)
			}
			c.alive()
			c.send(strings.Replace(frame, `"id":5`, `"id":6`, 1))
			<-began
			ss.Close()
			if cause := soon(t, "the end of "+call.method, causes); !errors.Is(cause, ErrClosed) {
				t.Errorf("%s: the session closed: %v", call.method, cause)
			}
		}
	}
}

// TestFault12EveryCallReturns: with a context that is over nothing is sent;
// with a server that does not answer, every method returns in its time.
func TestFault12EveryCallReturns(t *testing.T) {
	shows(t, "timeout.set", "cancel.initialize", "errors.local.distinct")
	eachEra(t, func(t *testing.T, version string) {
		cs, s := connected(t, version, ClientOptions{CacheSize: -1}, silent)
		before := len(s.received())
		over, cancel := context.WithCancel(t.Context())
		cancel()
		view := cs.With(CallOptions{Insist: true})
		for name, err := range callEverything(over, view) {
			if !errors.Is(err, context.Canceled) || isPeers(err) {
				t.Errorf("%s with a context that is over: %v", name, err)
			}
		}
		if _, err := view.Listen(over, SubscriptionFilter{ToolsListChanged: true}); err == nil && version == Version20260728 {
			t.Error("Listen with a context that is over")
		}
		if got := s.received()[before:]; len(got) > 0 && got[0].Method != methodListen {
			t.Errorf("%d messages were sent: %s", len(got), s.methods())
		}
		began := time.Now()
		for name, err := range callEverything(t.Context(), cs.With(CallOptions{Insist: true, Timeout: time.Second})) {
			if !errors.Is(err, context.DeadlineExceeded) || isPeers(err) {
				t.Errorf("%s without an answer: %v", name, err)
			}
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("nine calls of a second took %v", took)
		}
	})
}

// Handshakes that are given up are not cancelled.
func TestFault12HandshakeIsNotCancelled(t *testing.T) {
	shows(t, "cancel.initialize")
	for _, versions := range [][]string{nil, {Version20251125}, {Version20260728}} {
		bubble(t, func(t *testing.T) {
			s, tr := script(t, silent)
			if _, err := dial(t, ClientOptions{Versions: versions}, tr); err == nil {
				t.Error("connected to nobody")
			}
			if got := s.methods(); strings.Contains(got, notifyCancelled) {
				t.Errorf("sent %s", got)
			}
		})
	}
}

// TestFault13LateAnswersToTheServer: what a legacy client answers late, twice
// or unasked harms nothing, and nothing is kept of it.
func TestFault13LateAnswersToTheServer(t *testing.T) {
	shows(t, "cancel.sender.late")
	leakCheck(t)
	s := testServer(nil)
	giveUp := make(chan bool)
	rawTool(s, "short", func(ctx context.Context, req *Request) (*CallToolResult, error) {
		ctx, cancel := context.WithCancel(ctx)
		go func() { <-giveUp; cancel() }()
		_, err := req.Roots(ctx, "k")
		return textResult("%t", errors.Is(err, context.Canceled)), nil
	})
	c, ss := dialServer(t, s)
	c.initialize("2025-11-25", allCapabilities)
	for range 100 {
		question := memberOf(t, c.call(request("1", "tools/call", `"name":"short"`)), "id")
		giveUp <- true
		fits(t, c.next(), `{"id":null,"method":"notifications/cancelled","params":{"requestId":`+question+`}}`)
		fits(t, c.next(), `{"id":1,"result":{"content":[{"text":"true"}]}}`)
		c.send(`{"jsonrpc":"2.0","id":`+question+`,"result":{"roots":[]}}`, `{"jsonrpc":"2.0","id":`+question+`,"error":{"code":1,"message":"m"}}`, `{"jsonrpc":"2.0","id":"never","result":{}}`)
	}
	c.alive()
	ss.core.mu.Lock()
	defer ss.core.mu.Unlock()
	if n := len(ss.core.calls); n != 0 {
		t.Errorf("%d calls are kept", n)
	}
}

// TestFault14ProgressKeepsMeta: asking for progress leaves what the caller
// puts into _meta, on every call, and gives each request a token.
func TestFault14ProgressKeepsMeta(t *testing.T) {
	shows(t, "progress.token.unique", "progress.token.type")
	eachEra(t, func(t *testing.T, version string) {
		cs, s := connected(t, version, ClientOptions{CacheSize: -1}, each(`{"content":[],"contents":[],"messages":[],"completion":{"values":[]},"tools":[],"prompts":[],"resources":[],"resourceTemplates":[]}`))
		own := Meta{"example.com/a": []byte(`1.10`)}
		view := cs.With(CallOptions{Insist: true, Meta: own, Progress: func(ProgressParams) {}})
		for range 2 {
			for name, err := range callEverything(t.Context(), view) {
				if err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
		}
		tokens := map[string]bool{}
		for _, m := range s.received() {
			if !m.IsRequest() || m.Method == methodInitialize || m.Method == methodDiscover {
				continue
			}
			meta := rawMember(m.Params, "_meta")
			token := string(rawMember(meta, "progressToken"))
			if string(rawMember(meta, "example.com/a")) != "1.10" || token == "" || tokens[token] {
				t.Errorf("%s: %s", m.Method, m.Params)
			}
			tokens[token] = true
		}
		if len(own) != 1 {
			t.Errorf("the caller's map is now %v", own)
		}
	})
}

// TestFault15QuestionsNeedNoFreeWorker: calls that each ask something, more
// than any pool has, answered only when all have asked; within a call that the
// client makes while it answers, too.
func TestFault15QuestionsNeedNoFreeWorker(t *testing.T) {
	const n = 300
	eachEra(t, func(t *testing.T, version string) {
		s := testServer(nil)
		asked, all := 0, make(chan bool)
		var mu sync.Mutex
		opts := answering()
		opts.Versions = []string{version}
		var cs *ClientSession
		opts.Roots = func(ctx context.Context) ([]Root, error) {
			mu.Lock()
			if asked++; asked == n {
				close(all)
			}
			mu.Unlock()
			<-all
			text, err := CallTool[string](ctx, cs, "plain", nil)
			return []Root{{URI: "file:///" + text}}, err
		}
		AddTool(s, Tool{Name: "roots"}, func(ctx context.Context, req *Request, _ struct{}) (string, error) {
			roots, err := req.Roots(ctx, "k")
			return fmt.Sprint(len(roots)), err
		})
		AddTool(s, Tool{Name: "plain"}, func(context.Context, *Request, struct{}) (string, error) { return "plain", nil })
		cs = pair(t, s, opts)
		var wg sync.WaitGroup
		for range n {
			wg.Add(1)
			go func() {
				defer wg.Done()
				if text, err := CallTool[string](t.Context(), cs, "roots", nil); err != nil || text != "1" {
					t.Errorf("%q, %v", text, err)
				}
			}()
		}
		wg.Wait()
		synctest.Wait()
	})
}
