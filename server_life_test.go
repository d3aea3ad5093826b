package mcp

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// Before the client says that it is initialized the server asks it nothing;
// a handler that asks waits for that.
func TestServerAsksNobodyEarly(t *testing.T) {
	shows(t, "lifecycle.init.server-early")
	leakCheck(t)
	began := make(chan bool)
	s := askServer(nil, func(ctx context.Context, req *Request) (any, error) {
		began <- true
		return req.Roots(ctx, "q")
	})
	rawTool(s, "log", func(_ context.Context, req *Request) (*CallToolResult, error) {
		req.Log().Info("text")
		return nil, nil
	})
	c, _ := dialServer(t, s)
	fits(t, c.call(initializeFrame("0", "2025-11-25", `{"roots":{}}`)), `{"id":0,"result":{}}`)
	c.send(request("1", "tools/call", `"name":"ask"`))
	<-began
	s.RemoveTools("none", "ask") // of which it is not told, either
	c.alive()
	fits(t, c.call(request("2", "tools/call", `"name":"log"`)), `{"method":"notifications/message"}`)
	fits(t, c.next(), `{"id":2,"result":{}}`)
	c.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	got := c.next()
	fits(t, got, `{"method":"roots/list"}`)
	c.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`, `{"jsonrpc":"2.0","id":`+memberOf(t, got, "id")+`,"result":{"roots":[]}}`)
	fits(t, c.next(), `{"id":1,"result":{"content":[{"text":"[]"}]}}`)

	// One that cancels while the handler waits costs nothing more.
	s = askServer(nil, func(ctx context.Context, req *Request) (any, error) {
		began <- true
		_, err := req.Roots(ctx, "q")
		began <- errors.Is(err, context.Canceled)
		return nil, err
	})
	c, _ = dialServer(t, s)
	c.call(initializeFrame("0", "2025-11-25", `{"roots":{}}`))
	c.send(request("1", "tools/call", `"name":"ask"`))
	<-began
	c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	if !<-began {
		t.Error("the handler did not see that it was cancelled")
	}
	c.alive()
}

// What a connection needs is there before its first message and until its
// last handler has returned, after all that OnClose registered.
func TestLifespan(t *testing.T) {
	shows(t, "lifecycle.init.result")
	leakCheck(t)
	type key struct{}
	var events atomic.Value
	events.Store("")
	note := func(event string) { events.Store(events.Load().(string) + event + " ") }
	s := emptyServer(&ServerOptions{Lifespan: func(ctx context.Context) (context.Context, func(), error) {
		note("open")
		return context.WithValue(ctx, key{}, "value"), func() { note("close") }, nil
	}})
	began, release := make(chan *ServerSession), make(chan bool)
	rawTool(s, "t", func(ctx context.Context, req *Request) (*CallToolResult, error) {
		began <- req.Session()
		<-release
		note("handler:" + ctx.Value(key{}).(string))
		return nil, nil
	})
	ct, st := InMemory()
	ended := make(chan error)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() { ended <- s.Run(ctx, st) }()
	conn, err := ct.Connect(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	c := &wireClient{t, conn}
	c.send(modernRequest("1", "tools/call", `"name":"t"`, "{}"))
	ss := <-began
	closed := make(chan bool)
	ss.OnClose(func() { note("clean"); close(closed) })
	cancel()
	<-closed
	release <- true
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if got := events.Load(); got != "open clean handler:value close " {
		t.Error(got)
	}

	// One that fails, and a transport that does.
	s = emptyServer(&ServerOptions{Lifespan: func(context.Context) (context.Context, func(), error) { return nil, nil, io.ErrNoProgress }})
	if _, err := s.Connect(context.Background(), st); !errors.Is(err, io.ErrNoProgress) || !strings.Contains(err.Error(), "Lifespan") {
		t.Error(err)
	}
	other, end := InMemory() // whose peer learns of it
	if _, err := s.Connect(context.Background(), end); !errors.Is(err, io.ErrNoProgress) {
		t.Error(err)
	}
	if conn, err := other.Connect(context.Background()); err != nil {
		t.Error(err)
	} else if _, err := conn.Read(t.Context()); err != io.EOF {
		t.Errorf("the peer reads %v", err)
	}
	ends := 0
	s = emptyServer(&ServerOptions{Lifespan: func(context.Context) (context.Context, func(), error) { return nil, func() { ends++ }, nil }})
	if _, err := s.Connect(context.Background(), st); err == nil || ends != 1 { // an end connects once
		t.Error(err, ends)
	}
	c, ss = dialServer(t, s)
	c.alive()
	ss.Close()
	if ends != 2 {
		t.Errorf("%d ends", ends)
	}
}

// A state that is good once is refused the second time, as is anything made
// of it; without the option a lost retry may be sent again.
func TestStateOnce(t *testing.T) {
	shows(t, "mrtr.state.single-use", "mrtr.no-assumption")
	leakCheck(t)
	for _, once := range []bool{true, false} {
		ran := 0
		s := askServer(&ServerOptions{StateOnce: once}, func(ctx context.Context, req *Request) (any, error) {
			_, err := req.Roots(ctx, "q")
			if err == nil {
				ran++
			}
			return ran, err
		})
		_, ask := opened(t, s, "2026-07-28", `{"roots":{}}`)
		_, other := opened(t, s, "2026-07-28", `{"roots":{}}`)
		state := func() string {
			return `,"inputResponses":{"q":{"roots":[]}},"requestState":` + memberOf(t, ask("1", "tools/call", `"name":"ask"`), "result", "requestState")
		}
		first, second := state(), state()
		fits(t, ask("1", "tools/call", `"name":"ask"`+first), `{"result":{"content":[{"text":"1"}]}}`)
		if once {
			fits(t, ask("2", "tools/call", `"name":"ask"`+first), `{"error":{"code":-32602,"message":"params.requestState was used already"}}`)
			fits(t, other("2", "tools/call", `"name":"ask"`+first), `{"error":{"code":-32602}}`)
			fits(t, ask("3", "tools/call", `"name":"ask"`+second), `{"result":{"content":[{"text":"2"}]}}`)
		} else {
			fits(t, other("2", "tools/call", `"name":"ask"`+first), `{"result":{"content":[{"text":"2"}]}}`)
			if len(s.spent[0])+len(s.spent[1]) != 0 {
				t.Error("states are kept for nothing")
			}
			continue
		}
		// What was used is forgotten when it has expired, and never too much.
		s.spentSince = s.spentSince.Add(-s.opts.StateTTL - 2*time.Second)
		s.spend("a")
		if len(s.spent[1]) != 2 || s.spend("a") {
			t.Errorf("%d older states", len(s.spent[1]))
		}
		s.spentSince = s.spentSince.Add(-s.opts.StateTTL - 2*time.Second)
		s.spend("b")
		if len(s.spent[0]) != 1 || len(s.spent[1]) != 1 {
			t.Errorf("%d and %d states", len(s.spent[0]), len(s.spent[1]))
		}
		for i := len(s.spent[0]) + len(s.spent[1]); i < maxSpent; i++ {
			s.spent[0][[32]byte{byte(i), byte(i >> 8), byte(i >> 16), 1}] = true
		}
		fits(t, ask("4", "tools/call", `"name":"ask"`+state()), `{"error":{"code":-32602}}`)
	}
}

func TestCapabilitiesSayWhatThereIs(t *testing.T) {
	shows(t, "caps.advertise", "completion.caps", "prompts.caps", "tools.caps", "resources.caps", "logging.caps")
	leakCheck(t)
	noTool := func(context.Context, *Request) (*CallToolResult, error) { return nil, nil }
	noRead := func(context.Context, *Request) (*ReadResourceResult, error) { return nil, nil }
	complete := func(context.Context, *Request, *CompleteParams) (*CompleteResult, error) { return nil, nil }
	for _, c := range []struct {
		opts     *ServerOptions
		register func(s *Server)
		want     string
	}{
		{nil, func(*Server) {}, `{"logging":{},"tools":null,"prompts":null,"resources":null,"completions":null}`},
		{nil, func(s *Server) { rawTool(s, "t", noTool) }, `{"logging":{},"tools":{"listChanged":true},"prompts":null,"resources":null,"completions":null}`},
		{nil, func(s *Server) { rawTool(s, "t", noTool); s.RemoveTools("t") }, `{"tools":{"listChanged":true}}`},
		{nil, func(s *Server) {
			s.AddPrompt(Prompt{Name: "p"}, func(context.Context, *Request) (*GetPromptResult, error) { return nil, nil })
		}, `{"tools":null,"prompts":{"listChanged":true},"resources":null}`},
		{nil, func(s *Server) { s.AddResource(Resource{URI: "a:b", Name: "b"}, noRead) }, `{"tools":null,"prompts":null,"resources":{"listChanged":true,"subscribe":true}}`},
		{nil, func(s *Server) { s.AddResourceTemplate(ResourceTemplate{URITemplate: "a:{b}", Name: "b"}, noRead) }, `{"resources":{"listChanged":true,"subscribe":true}}`},
		{&ServerOptions{Complete: complete}, func(*Server) {}, `{"completions":{},"tools":null}`},
	} {
		s := emptyServer(c.opts)
		c.register(s)
		_, ask := opened(t, s, "2026-07-28", "{}")
		fits(t, ask("1", "server/discover", ""), `{"result":{"capabilities":`+c.want+`}}`)
		w, _ := dialServer(t, s)
		fits(t, w.initialize("2025-11-25", "{}"), `{"result":{"capabilities":`+c.want+`}}`)
	}
}

// What is deprecated at 2026-07-28 works there as it did.
func TestDeprecatedFeaturesStillWork(t *testing.T) {
	shows(t, "deprecated.still-work")
	leakCheck(t)
	s := askServer(nil, func(ctx context.Context, req *Request) (any, error) {
		roots, err := req.Roots(ctx, "roots")
		if err != nil {
			return nil, err
		}
		m, err := req.Sample(ctx, "sample", &CreateMessageParams{Messages: []SamplingMessage{turn("user", Text(roots[0].Name))}, MaxTokens: 1})
		if err != nil {
			return nil, err
		}
		req.Log().Warn(m.Content[0].Text)
		return "done", nil
	})
	c, _ := dialServer(t, s)
	const meta = `,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"roots":{},"sampling":{}},"io.modelcontextprotocol/logLevel":"warning"}`
	got := c.call(request("1", "tools/call", `"name":"ask"`+meta))
	fits(t, got, `{"result":{"inputRequests":{"roots":{"method":"roots/list"}}}}`)
	got = c.call(request("2", "tools/call", `"name":"ask","inputResponses":{"roots":{"roots":[{"uri":"file:///a","name":"A"}]}},"requestState":`+memberOf(t, got, "result", "requestState")+meta))
	fits(t, got, `{"result":{"inputRequests":{"sample":{"method":"sampling/createMessage","params":{"messages":[{"content":{"text":"A"}}]}}}}}`)
	got = c.call(request("3", "tools/call", `"name":"ask","inputResponses":{"sample":{"role":"assistant","model":"m","content":{"type":"text","text":"said"}}},"requestState":`+memberOf(t, got, "result", "requestState")+meta))
	fits(t, got, `{"method":"notifications/message","params":{"level":"warning","data":{"msg":"said"}}}`)
	fits(t, c.next(), `{"id":3,"result":{"content":[{"text":"\"done\""}]}}`)
}

// Changes reach a modern client by its listens only: not beside a call, not
// in the words of a log, and not on a connection that came after.
func TestChangesTravelOnListensOnly(t *testing.T) {
	shows(t, "subs.list-changed.only-listen", "subs.no-persist", "subs.no-request-scoped", "prompts.list-changed.modern")
	leakCheck(t)
	s := emptyServer(nil)
	noPrompt := func(context.Context, *Request) (*GetPromptResult, error) { return nil, nil }
	s.AddPrompt(Prompt{Name: "p"}, noPrompt)
	rawTool(s, "change", func(ctx context.Context, req *Request) (*CallToolResult, error) {
		req.Log().Info("text")
		err := req.Progress(ctx, ProgressParams{Progress: 1})
		s.AddPrompt(Prompt{Name: "p"}, noPrompt)
		return nil, err
	})
	call := request("7", "tools/call", `"name":"change","_meta":{"progressToken":"p","io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/logLevel":"debug"}`)
	c, ss := dialServer(t, s)
	c.send(listenFrame(`"sub"`, `{"promptsListChanged":true,"toolsListChanged":true}`))
	fits(t, c.next(), `{"method":"notifications/subscriptions/acknowledged"}`)
	plain, _ := dialServer(t, s)
	for _, w := range []*wireClient{plain, c} {
		fits(t, w.call(call), `{"method":"notifications/message","params":{"_meta":null}}`)
		fits(t, w.next(), `{"method":"notifications/progress","params":{"progressToken":"p","_meta":null}}`)
		result, change := w.next(), c.next()
		if w == c && memberOf(t, change, "result") != "" { // on one connection either may be first
			result, change = change, result
		}
		fits(t, result, `{"id":7,"result":{}}`)
		fits(t, change, `{"method":"notifications/prompts/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"sub"}}}`)
	}
	plain.alive() // and nothing was on its way
	go ss.Close()
	fits(t, c.next(), `{"id":"sub","result":{}}`)
	again, _ := dialServer(t, s)
	fits(t, again.call(call), `{"method":"notifications/message"}`)
	fits(t, again.next(), `{"method":"notifications/progress"}`)
	fits(t, again.next(), `{"id":7,"result":{}}`)
	witness, _ := dialServer(t, s) // when it has heard, the other would have
	witness.send(listenFrame("1", `{"promptsListChanged":true}`))
	fits(t, witness.next(), `{"method":"notifications/subscriptions/acknowledged"}`)
	s.RemovePrompts("p")
	fits(t, witness.next(), `{"method":"notifications/prompts/list_changed"}`)
	again.alive()
}

// The program hears by middleware that the client's roots have changed.
func TestServerHearsOfChangedRoots(t *testing.T) {
	shows(t, "roots.server.list-changed")
	leakCheck(t)
	heard := make(chan string, 1)
	s := testServer(nil)
	s.Use(func(next Handler) Handler {
		return func(ctx context.Context, req *Request) (any, error) {
			if req.Method == "notifications/roots/list_changed" {
				heard <- req.Version()
			}
			return next(ctx, req)
		}
	})
	for _, version := range []string{"2024-11-05", "2025-11-25"} {
		c, _ := dialServer(t, s)
		c.initialize(version, `{"roots":{"listChanged":true}}`)
		c.send(`{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`)
		if got := <-heard; got != version {
			t.Errorf("heard at %s", got)
		}
		c.alive()
	}
}

// A session that ends while it is initialized is not told of changes for ever.
func TestInitializedTooLateIsNotWatched(t *testing.T) {
	leakCheck(t)
	s := testServer(nil)
	over := make(chan int, 1)
	s.Use(func(next Handler) Handler {
		return func(ctx context.Context, req *Request) (any, error) {
			req.Session().Close()
			result, err := next(ctx, req)
			s.mu.RLock()
			defer s.mu.RUnlock()
			over <- len(s.watchers)
			return result, err
		}
	})
	c, _ := dialServer(t, s)
	c.send(initializeFrame("0", "2025-11-25", "{}"))
	if n := soon(t, "initialize", over); n != 0 {
		t.Errorf("%d sessions are watched", n)
	}
}
