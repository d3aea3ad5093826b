package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"
)

type addIn struct {
	A int64 `json:"a"`
	B int64 `json:"b"`
}

type addOut struct {
	Sum int64 `json:"sum"`
}

// testServer has one of everything.
func testServer(opts *ServerOptions) *Server {
	s := NewServer(Implementation{Name: "test", Version: "1"}, opts)
	AddTool(s, Tool{Name: "add"}, func(_ context.Context, _ *Request, in addIn) (addOut, error) {
		return addOut{in.A + in.B}, nil
	})
	AddTool(s, Tool{Name: "ask"}, func(ctx context.Context, req *Request, _ struct{}) (string, error) {
		a, err := req.Elicit(ctx, "name", &ElicitParams{Message: "Name?", RequestedSchema: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}`)})
		if err != nil {
			return "", err
		}
		roots, err := req.Roots(ctx, "roots")
		if err != nil {
			return "", err
		}
		m, err := req.Sample(ctx, "sample", &CreateMessageParams{Messages: []SamplingMessage{{Role: "user", Content: []Content{Text("hi")}}}, MaxTokens: 5})
		if err != nil {
			return "", err
		}
		return a.Action + " " + string(a.Content) + " " + roots[0].URI + " " + m.Content[0].Text, nil
	})
	AddTool(s, Tool{Name: "count"}, func(ctx context.Context, req *Request, in struct {
		To int `json:"to"`
	}) (string, error) {
		for i := range in.To {
			if err := req.Progress(ctx, ProgressParams{Progress: float64(i + 1)}); err != nil {
				return "", err
			}
		}
		return "done", nil
	})
	AddTool(s, Tool{Name: "wait"}, func(ctx context.Context, _ *Request, _ struct{}) (string, error) {
		<-ctx.Done()
		return "", context.Cause(ctx)
	})
	AddTool(s, Tool{Name: "fail"}, func(context.Context, *Request, struct{}) (string, error) {
		return "", errors.New("it failed")
	})
	AddTool(s, Tool{Name: "panic"}, func(context.Context, *Request, struct{}) (string, error) { panic("secret") })
	s.AddResource(Resource{URI: "test://a", Name: "a", MIMEType: "text/plain"}, func(context.Context, *Request) (*ReadResourceResult, error) {
		return &ReadResourceResult{Contents: []ResourceContents{{Text: "A"}}}, nil
	})
	s.AddResourceTemplate(ResourceTemplate{URITemplate: "test://users/{id}", Name: "user"}, func(_ context.Context, req *Request) (*ReadResourceResult, error) {
		return &ReadResourceResult{Contents: []ResourceContents{{Text: req.Vars["id"]}}}, nil
	})
	s.AddPrompt(Prompt{Name: "greet", Arguments: []PromptArgument{{Name: "name", Required: true}}}, func(_ context.Context, req *Request) (*GetPromptResult, error) {
		return &GetPromptResult{Messages: []PromptMessage{{Role: "user", Content: Text("hi " + req.Vars["name"])}}}, nil
	})
	return s
}

// answering are options of a client that answers everything.
func answering() ClientOptions {
	return ClientOptions{
		Elicit: func(context.Context, *ElicitParams) (*ElicitResult, error) {
			return &ElicitResult{Action: "accept", Content: json.RawMessage(`{"name":"Ada"}`)}, nil
		},
		Sample: func(context.Context, *CreateMessageParams) (*CreateMessageResult, error) {
			return &CreateMessageResult{Role: "assistant", Model: "m", Content: []Content{Text("sampled")}}, nil
		},
		Roots: func(context.Context) ([]Root, error) { return []Root{{URI: "file:///r"}}, nil },
	}
}

// pair connects a client of the given versions, nil for all, to a server.
func pair(t *testing.T, s *Server, opts ClientOptions) *ClientSession {
	t.Helper()
	ct, st := InMemory()
	ss, err := s.Connect(context.Background(), st)
	if err != nil {
		t.Fatal(err)
	}
	cs, err := NewClient(Implementation{Name: "c", Version: "1"}, &opts).Connect(context.Background(), ct)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cs.Close(); ss.Close() })
	return cs
}

func everyVersion(t *testing.T, f func(t *testing.T, version string)) {
	for _, rev := range revisions {
		t.Run(rev.version, func(t *testing.T) { f(t, rev.version) })
	}
}

func TestConversationAtEveryRevision(t *testing.T) {
	everyVersion(t, func(t *testing.T, version string) {
		leakCheck(t)
		opts := answering()
		opts.Versions = []string{version}
		cs := pair(t, testServer(nil), opts)
		ctx := context.Background()
		if got := cs.Server().ProtocolVersion; got != version || cs.Server().Name != "test" {
			t.Errorf("server %+v", cs.Server())
		}
		if out, err := CallTool[addOut](ctx, cs, "add", addIn{9007199254740993, 1}); err != nil && revisionOf(version).atLeast(rev20250618) || err == nil && out.Sum != 9007199254740994 {
			t.Errorf("add = %+v, %v", out, err)
		}
		var names []string
		for tool, err := range cs.Tools(ctx) {
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, tool.Name)
		}
		if got := strings.Join(names, " "); got != "add ask count wait fail panic" {
			t.Errorf("tools %s", got)
		}
		if r, err := cs.ReadResource(ctx, "test://users/7"); err != nil || r.Contents[0].Text != "7" {
			t.Errorf("read %+v, %v", r, err)
		}
		if p, err := cs.GetPrompt(ctx, "greet", map[string]string{"name": "Bo"}); err != nil || p.Messages[0].Content.Text != "hi Bo" {
			t.Errorf("prompt %+v, %v", p, err)
		}
		if err := cs.Ping(ctx); err != nil {
			t.Error(err)
		}
		if revisionOf(version).atLeast(rev20250618) {
			if got, err := CallTool[string](ctx, cs, "ask", nil); err != nil || got != `accept {"name":"Ada"} file:///r sampled` {
				t.Errorf("ask = %q, %v", got, err)
			}
		}
		var seen []float64
		view := cs.With(CallOptions{Progress: func(p ProgressParams) { seen = append(seen, p.Progress) }})
		if got, err := CallTool[string](ctx, view, "count", map[string]int{"to": 3}); err != nil || got != "done" || len(seen) != 3 {
			t.Errorf("count = %q, %v, progress %v", got, err, seen)
		}
		var failed *ToolError
		if _, err := CallTool[string](ctx, cs, "fail", nil); !errors.As(err, &failed) || failed.Error() != "mcp: it failed" {
			t.Errorf("fail: %v", err)
		}
		var peer *Error
		if _, err := CallTool[string](ctx, cs, "panic", nil); !errors.As(err, &peer) || peer.Code != CodeInternalError || strings.Contains(peer.Message, "secret") {
			t.Errorf("panic: %v", err)
		}
	})
}

// A typed call, validated, over a byte stream: what the server allocates.
func TestTypedCallCeiling(t *testing.T) {
	const modern = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"}},`
	for _, c := range []struct {
		name, meta    string
		allocs, bytes float64
	}{{"legacy", "", 14, 1500}, {"modern", modern, 16, 2000}} {
		t.Run(c.name, func(t *testing.T) {
			serverIn, clientOut := io.Pipe()
			clientIn, serverOut := io.Pipe()
			ss, err := testServer(nil).Connect(context.Background(), &Stream{Reader: serverIn, Writer: serverOut})
			if err != nil {
				t.Fatal(err)
			}
			defer ss.Close()
			answers := bufio.NewReaderSize(clientIn, 1<<16)
			exchange := func(line []byte) []byte {
				clientOut.Write(line)
				answer, err := answers.ReadSlice('\n')
				if err != nil {
					t.Fatal(err)
				}
				return answer
			}
			exchange([]byte(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}` + "\n"))
			call := []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{` + c.meta + `"name":"add","arguments":{"a":9007199254740993,"b":1}}}` + "\n")
			if got := exchange(call); !bytes.Contains(got, []byte(`"structuredContent":{"sum":9007199254740994}`)) {
				t.Fatalf("answer %s", got)
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			allocs := testing.AllocsPerRun(200, func() { exchange(call) })
			runtime.ReadMemStats(&after)
			size := float64(after.TotalAlloc-before.TotalAlloc) / 201
			t.Logf("%.0f allocations, %.0f bytes", allocs, size)
			if !raceEnabled && (allocs > c.allocs || size > c.bytes) {
				t.Errorf("%.0f allocations and %.0f bytes a call; at most %.0f and %.0f", allocs, size, c.allocs, c.bytes)
			}
		})
	}
}

// A courier is a transport of the user's own: a rendezvous for every frame,
// written with nothing but what the package exports.
type courier struct {
	out, in chan []byte
	sent    func(frame []byte)

	once           sync.Once
	gone, peerGone chan struct{}
}

func couriers(sent func(from string, frame []byte)) (client, server *courier) {
	a, b := make(chan []byte), make(chan []byte)
	client = &courier{out: a, in: b, gone: make(chan struct{}), sent: func(f []byte) { sent("client", f) }}
	server = &courier{out: b, in: a, gone: make(chan struct{}), sent: func(f []byte) { sent("server", f) }}
	client.peerGone, server.peerGone = server.gone, client.gone
	return client, server
}

func (c *courier) Connect(context.Context) (Conn, error) { return c, nil }

func (c *courier) Read(ctx context.Context) ([]byte, error) {
	select {
	case frame := <-c.in:
		return frame, nil
	case <-c.peerGone:
		return nil, io.EOF
	case <-c.gone:
		return nil, ErrClosed
	}
}

func (c *courier) Write(ctx context.Context, frame []byte) error {
	c.sent(bytes.Clone(frame))
	select {
	case c.out <- bytes.Clone(frame):
		return nil
	case <-c.peerGone:
		return io.ErrClosedPipe
	case <-c.gone:
		return ErrClosed
	}
}

func (c *courier) Close() error {
	c.once.Do(func() { close(c.gone) })
	return nil
}

// A conversation over a transport from outside the package keeps the format,
// and the rules of its era: the handshake or the _meta of every request, and
// who may ask. A client never sends a batch.
func TestCustomTransport(t *testing.T) {
	shows(t, "transport.custom.legacy", "transport.custom.modern", "batch.initialize-excluded", "base.jsonrpc.conform")
	everyVersion(t, func(t *testing.T, version string) {
		leakCheck(t)
		var mu sync.Mutex
		var traffic []string
		client, server := couriers(func(from string, frame []byte) {
			mu.Lock()
			defer mu.Unlock()
			traffic = append(traffic, from+" "+string(frame))
		})
		ss, err := testServer(nil).Connect(context.Background(), server)
		if err != nil {
			t.Fatal(err)
		}
		opts := answering()
		opts.Versions = []string{version}
		cs, err := NewClient(Implementation{Name: "c", Version: "1"}, &opts).Connect(context.Background(), client)
		if err != nil {
			t.Fatal(err)
		}
		ctx := context.Background()
		if _, err := cs.CallTool(ctx, "add", addIn{1, 2}); err != nil {
			t.Error(err)
		}
		if revisionOf(version).atLeast(rev20250618) {
			if got, err := CallTool[string](ctx, cs, "ask", nil); err != nil || got != `accept {"name":"Ada"} file:///r sampled` {
				t.Errorf("ask = %q, %v", got, err)
			}
		}
		counted := 0
		view := cs.With(CallOptions{Progress: func(ProgressParams) { counted++ }})
		if _, err := view.CallTool(ctx, "count", map[string]int{"to": 3}); err != nil || counted != 3 {
			t.Errorf("%d notices, %v", counted, err)
		}
		if err := errors.Join(cs.Close(), cs.Wait(), ss.Wait()); err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		checkTraffic(t, traffic, revisionOf(version))
	})
}

func checkTraffic(t *testing.T, traffic []string, rev *revision) {
	for i, line := range traffic {
		from, frame, _ := strings.Cut(line, " ")
		m, _, bad := decodeMessage([]byte(frame))
		if bad != nil {
			t.Errorf("%v: %s", bad, line)
		}
		switch want := [...]string{methodInitialize, "", notifyInitialized}; {
		case !rev.modern && i < len(want):
			if m.Method != want[i] {
				t.Errorf("frame %d of the handshake: %s", i, line)
			}
		case m.Method == "" && !rev.modern || m.Method == notifyProgress:
		case from == "server" && rev.modern:
			if m.Method != "" {
				t.Errorf("a server of %s asks: %s", rev.version, line)
			}
		case rev.modern:
			meta := rawMember(m.Params, "_meta")
			if !m.IsRequest() || rawMember(meta, metaProtocolVersion) == nil || rawMember(meta, metaClientCapabilities) == nil {
				t.Errorf("sent at %s: %s", rev.version, line)
			}
		case !methodDefined(m.Method, rev, from == "client"):
			t.Errorf("not of %s: %s", rev.version, line)
		}
	}
}

// Text that is not UTF-8 costs its message and nothing else; text that is comes
// through unchanged.
func TestUTF8(t *testing.T) {
	shows(t, "transport.utf8")
	leakCheck(t)
	s := emptyServer(nil)
	rawTool(s, "echo", func(_ context.Context, req *Request) (*CallToolResult, error) {
		return textResult("%s", rawMember(req.Arguments, "s")), nil
	})
	c, _ := dialServer(t, s)
	c.initialize(Version20251125, "{}")
	for _, text := range []string{"é ü ñ", "日本語", "🂡\u2028\u2029", "a\u0000b", "<&>"} {
		quoted := string(appendString(nil, text))
		got := c.call(request("1", methodToolsCall, `"name":"echo","arguments":{"s":`+quoted+`}`))
		var answer struct {
			Result struct{ Content []struct{ Text string } }
		}
		var back string
		if json.Unmarshal([]byte(got), &answer) != nil || json.Unmarshal([]byte(answer.Result.Content[0].Text), &back) != nil || back != text || !utf8.ValidString(got) {
			t.Errorf("%q came back in %s", text, got)
		}
	}
	for _, bytes := range []string{"\xff", "\xc3", "\xed\xa0\x80", "\xc0\xaf", "\xf4\x90\x80\x80"} {
		for _, frame := range []string{
			request("1", methodToolsCall, `"name":"echo","arguments":{"s":"`+bytes+`"}`),
			`{"jsonrpc":"2.0","id":1,"method":"` + bytes + `"}`, `{"jsonrpc":"2.0","id":"` + bytes + `","method":"ping"}`,
			`{"jsonrpc":"2.0","id":1,"method":"ping","` + bytes + `":1}`, bytes,
		} {
			fits(t, c.call(frame), `{"id":null,"error":{"code":-32700}}`)
		}
	}
	c.alive()
}

// A client drops a message that is not UTF-8, too: the call waits on.
func TestUTF8OfAServer(t *testing.T) {
	shows(t, "transport.utf8")
	leakCheck(t)
	client, server := InMemory()
	conn, err := server.Connect(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	go func() {
		for {
			frame, err := conn.Read(context.Background())
			if err != nil {
				return
			}
			m, _, _ := decodeMessage(frame)
			if !m.IsRequest() {
				continue // it is told of what it wrote that is no message
			}
			result := `{"content":[{"type":"text","text":"日本語"}]}`
			if m.Method == methodInitialize {
				result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}`
			}
			for _, text := range []string{"\xff", result} {
				conn.Write(context.Background(), []byte(`{"jsonrpc":"2.0","id":`+m.ID.String()+`,"result":`+strings.ReplaceAll(text, "\xff", "{\"a\":\"\xff\"}")+`}`))
			}
		}
	}()
	cs, err := NewClient(Implementation{Name: "c", Version: "1"}, &ClientOptions{Versions: []string{Version20251125}}).Connect(context.Background(), client)
	if err != nil {
		t.Fatal(err)
	}
	defer cs.Close()
	if r, err := cs.CallTool(context.Background(), "t", nil); err != nil || r.Content[0].Text != "日本語" {
		t.Errorf("%+v, %v", r, err)
	}
}

// An application's own error codes go out as they are, with their data; what
// is no error at all is an internal one, and never code 0.
func TestErrorCodesOfHandlers(t *testing.T) {
	shows(t, "errors.app.range", "errors.internal", "base.error.code-integer")
	leakCheck(t)
	var none *Error
	for _, c := range []struct {
		err  error
		want string
	}{
		{Errorf(1, "one"), `{"code":1,"message":"one"}`},
		{Errorf(-1, "one"), `{"code":-1,"message":"one"}`},
		{Errorf(-31999, "near"), `{"code":-31999,"message":"near"}`},
		{Errorf(-32769, "near"), `{"code":-32769,"message":"near"}`},
		{Errorf(1<<31-1, "big"), `{"code":2147483647,"message":"big"}`},
		{&Error{Code: 7, Message: "m", Data: json.RawMessage(`{"a":[1]}`)}, `{"code":7,"message":"m","data":{"a":[1]}}`},
		{fmt.Errorf("wrapped: %w", Errorf(7, "seven")), `{"code":7,"message":"seven"}`},
		{Errorf(0, "zero"), `{"code":-32603,"message":"internal error","data":null}`},
		{&Error{}, `{"code":-32603,"message":"internal error"}`},
		{none, `{"code":-32603,"message":"internal error"}`},
		{fmt.Errorf("wrapped: %w", none), `{"code":-32603,"message":"internal error"}`},
		{errors.Join(none, errors.New("secret")), `{"code":-32603,"message":"internal error"}`},
		{errors.New("secret"), `{"code":-32603,"message":"internal error"}`},
	} {
		s := emptyServer(&ServerOptions{Logger: slog.New(slog.NewJSONHandler(io.Discard, nil))})
		s.Handle("com.example/fail", func(context.Context, *Request) (any, error) { return nil, c.err })
		wire, _ := dialServer(t, s)
		wire.initialize(Version20251125, "{}")
		fits(t, wire.call(request("1", "com.example/fail", "")), `{"id":1,"error":`+c.want+`}`)
		fits(t, wire.call(modernRequest("1", "com.example/fail", "", "{}")), `{"id":1,"error":`+c.want+`}`)
		wire.conn.Close()
	}
	if none.Error() == "" || none.Is(Errorf(0, "")) || Errorf(1, "").Is(none) {
		t.Error("a nil *Error is like another one")
	}
}

// The package's name stands in an error once, however it is wrapped.
func TestErrorTexts(t *testing.T) {
	leakCheck(t)
	cs := pair(t, testServer(nil), ClientOptions{})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, cancelled := cs.CallTool(ctx, "add", nil)
	_, refused := cs.ReadResource(context.Background(), "test://none")
	_, late := cs.With(CallOptions{Timeout: time.Millisecond}).CallTool(context.Background(), "wait", nil)
	notified := cs.Notify(context.Background(), "x", json.RawMessage(`1`))
	cs.Close()
	_, closed := cs.CallTool(context.Background(), "add", nil)
	gone := cs.Notify(context.Background(), "x", nil)
	for i, err := range []error{cancelled, refused, late, notified, closed, gone} {
		if err == nil || strings.Count(err.Error(), "mcp:") != 1 || !strings.HasPrefix(err.Error(), "mcp: ") {
			t.Errorf("%d: %v", i, err)
		}
	}
	if !errors.Is(cancelled, context.Canceled) || !errors.Is(late, context.DeadlineExceeded) || !errors.Is(closed, ErrClosed) || !errors.Is(gone, ErrClosed) {
		t.Errorf("%v, %v, %v, %v", cancelled, late, closed, gone)
	}
}

// Middleware that ends its goroutine in initialize does not end the reader.
func TestGoexitInInitialize(t *testing.T) {
	shows(t, "errors.internal")
	leakCheck(t)
	s := emptyServer(nil)
	s.Use(func(next Handler) Handler {
		return func(ctx context.Context, req *Request) (any, error) {
			if req.Method == methodInitialize {
				runtime.Goexit()
			}
			return next(ctx, req)
		}
	})
	c, _ := dialServer(t, s)
	fits(t, c.call(initializeFrame("1", Version20251125, "{}")), `{"id":1,"error":{"code":-32603}}`)
	fits(t, c.call(modernRequest("2", methodDiscover, "", "{}")), `{"id":2,"result":{}}`)
}

// initialize is not served in a batch, and before it there are none.
func TestInitializeInABatch(t *testing.T) {
	shows(t, "batch.initialize-excluded", "batch.receive")
	leakCheck(t)
	c, _ := dialServer(t, emptyServer(nil))
	batch := "[" + initializeFrame("1", Version20250326, "{}") + "]"
	fits(t, c.call(batch), `{"id":null,"error":{"code":-32600}}`)
	c.initialize(Version20250326, "{}")
	c.send("[" + initializeFrame("1", Version20250618, "{}") + `,{"jsonrpc":"2.0","id":2,"method":"ping"}]`)
	var answers []json.RawMessage
	if err := json.Unmarshal([]byte(c.next()), &answers); err != nil || len(answers) != 2 {
		t.Fatalf("%s, %v", answers, err)
	}
	for _, a := range answers {
		if memberOf(t, string(a), "id") == "1" {
			fits(t, string(a), `{"id":1,"error":{"code":-32600}}`)
		} else {
			fits(t, string(a), `{"id":2,"result":{}}`)
		}
	}
	c.alive()
}

// A batch of what is no message is not answered at any length; what is one is
// served wherever it stands.
func TestBatchOfNothing(t *testing.T) {
	shows(t, "batch.receive")
	leakCheck(t)
	c, _ := dialServer(t, emptyServer(nil))
	c.initialize(Version20250326, "{}")
	for _, junk := range []string{"1", "{}", "[]", `{"jsonrpc":"2.0","id":1}`} {
		c.send("[" + strings.Repeat(junk+",", 100000) + `{"jsonrpc":"2.0","id":2,"method":"ping"}]`)
		answer := c.next()
		var answers []json.RawMessage
		if err := json.Unmarshal([]byte(answer), &answers); err != nil || len(answers) != maxRefused+1 {
			t.Errorf("%d answers, %v: %.200s", len(answers), err, answer)
			continue
		}
		fits(t, string(answers[maxRefused-1]), `{"error":{"code":-32600,"message":"too many members of the batch are no messages"}}`)
		fits(t, string(answers[maxRefused]), `{"id":2,"result":{}}`)
	}
	c.alive()
}

// A connect context that ends takes no session with it, and one server process
// serves any number of conversations.
func TestOneServerForManyConversations(t *testing.T) {
	shows(t, "stateless.client-lifetime")
	everyVersion(t, func(t *testing.T, version string) {
		leakCheck(t)
		client, server := InMemory()
		launches := 0
		launch := launcher(func(ctx context.Context) (Conn, error) {
			launches++
			return client.Connect(ctx)
		})
		ss, err := testServer(nil).Connect(context.Background(), server)
		if err != nil {
			t.Fatal(err)
		}
		defer ss.Close()
		ctx, cancel := context.WithCancel(context.Background())
		cs, err := NewClient(Implementation{Name: "c", Version: "1"}, &ClientOptions{Versions: []string{version}}).Connect(ctx, launch)
		if err != nil {
			t.Fatal(err)
		}
		defer cs.Close()
		cancel()
		var wg sync.WaitGroup
		for range 5 {
			wg.Add(1)
			go func() {
				defer wg.Done()
				ctx, cancel := context.WithCancel(context.Background())
				_, err := cs.With(CallOptions{Meta: Meta{"com.example/conversation": json.RawMessage(`1`)}}).CallTool(ctx, "add", addIn{1, 2})
				if err != nil {
					t.Error(err)
				}
				cancel()
			}()
		}
		wg.Wait()
		if err := cs.Ping(context.Background()); err != nil || launches != 1 {
			t.Errorf("%d launches, %v", launches, err)
		}
	})
}

type launcher func(ctx context.Context) (Conn, error)

func (l launcher) Connect(ctx context.Context) (Conn, error) { return l(ctx) }

// What a ping and a big argument cost the server, over a byte stream.
func TestStreamCeilings(t *testing.T) {
	serverIn, clientOut := io.Pipe()
	clientIn, serverOut := io.Pipe()
	s := emptyServer(nil)
	AddTool(s, Tool{Name: "size"}, func(_ context.Context, _ *Request, in struct {
		Text string `json:"text"`
	}) (int, error) {
		return len(in.Text), nil
	})
	ss, err := s.Connect(context.Background(), &Stream{Reader: serverIn, Writer: serverOut})
	if err != nil {
		t.Fatal(err)
	}
	defer ss.Close()
	answers := bufio.NewReaderSize(clientIn, 1<<16)
	exchange := func(line []byte) []byte {
		clientOut.Write(line)
		answer, err := answers.ReadSlice('\n')
		if err != nil {
			t.Fatal(err)
		}
		return answer
	}
	cost := func(n int, line []byte) (allocs, bytes float64) {
		exchange(line)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		allocs = testing.AllocsPerRun(n, func() { exchange(line) })
		runtime.ReadMemStats(&after)
		return allocs, float64(after.TotalAlloc-before.TotalAlloc) / float64(n+1)
	}
	exchange([]byte(initializeFrame("0", Version20251125, "{}") + "\n"))
	allocs, size := cost(200, []byte(`{"jsonrpc":"2.0","id":1,"method":"ping"}`+"\n"))
	t.Logf("ping: %.0f allocations, %.0f bytes", allocs, size)
	if !raceEnabled && (allocs > 5 || size > 600) {
		t.Errorf("a ping costs %.0f allocations and %.0f bytes; at most 5 and 600", allocs, size)
	}
	if raceEnabled {
		return
	}
	const big = 8 << 20
	for name, text := range map[string]string{"plain": strings.Repeat("x", big), "escaped": strings.Repeat(`\n`, big/2), "wide": strings.Repeat("é", big/2)} {
		line := []byte(request("1", methodToolsCall, `"name":"size","arguments":{"text":"`+text+`"}`) + "\n")
		_, size = cost(2, line)
		t.Logf("%s argument of 8 MiB: %.2f times its size", name, size/big)
		if size > 2.5*big {
			t.Errorf("%s argument of 8 MiB costs %.2f times its size; at most 2.5", name, size/big)
		}
	}
}

// What 2026-07-28 deprecates works there as it did: roots, sampling, logging,
// and includeContext.
func TestDeprecatedStillWorks(t *testing.T) {
	shows(t, "deprecated.still-work")
	everyVersion(t, func(t *testing.T, version string) {
		leakCheck(t)
		s := emptyServer(nil)
		rawTool(s, "old", func(ctx context.Context, req *Request) (*CallToolResult, error) {
			roots, err := req.Roots(ctx, "roots")
			if err != nil {
				return nil, err
			}
			m, err := req.Sample(ctx, "sample", &CreateMessageParams{
				Messages: []SamplingMessage{{Role: "user", Content: []Content{Text("hi")}}}, MaxTokens: 5, IncludeContext: "thisServer",
			})
			if err != nil {
				return nil, err
			}
			req.Log().Info("sampled")
			return textResult("%s %s", roots[0].URI, m.Content[0].Text), nil
		})
		s.AddResource(Resource{URI: "test://a", Name: "a"}, func(context.Context, *Request) (*ReadResourceResult, error) { return nil, nil })
		opts := answering()
		opts.Versions = []string{version}
		opts.Capabilities = &ClientCapabilities{Roots: &RootsCapability{}, Sampling: &SamplingCapability{Context: new(struct{})}}
		included := ""
		sample := opts.Sample
		opts.Sample = func(ctx context.Context, p *CreateMessageParams) (*CreateMessageResult, error) {
			included = p.IncludeContext
			return sample(ctx, p)
		}
		var logged atomic.Int64
		opts.Log = func(_ context.Context, p *LogParams) {
			if bytes.Contains(p.Data, []byte("sampled")) {
				logged.Add(1)
			}
		}
		cs := pair(t, s, opts)
		ctx := context.Background()
		if err := cs.SetLogLevel(ctx, "info"); err != nil {
			t.Error(err)
		}
		r, err := cs.CallTool(ctx, "old", nil)
		if err != nil || r.Content[0].Text != "file:///r sampled" || included != "thisServer" || logged.Load() != 1 {
			t.Errorf("%+v, %v, %q included, %d logged", r, err, included, logged.Load())
		}
	})
}
