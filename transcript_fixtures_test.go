//go:build go1.25

package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing/synctest"
	"time"
)

// Who the transcripts talk to: servers and clients that are described in
// testdata/transcripts/README.md.

// A wireEnd is the connection of the one under test: what it writes becomes an
// event.
type wireEnd struct {
	run  *scriptRun
	in   chan []byte
	gone chan struct{}
	once sync.Once
	eof  bool
}

// connect makes a new connection. There can be a second one: of a client
// whose server died.
func (r *scriptRun) connect() *wireEnd {
	again := r.wire != nil
	r.wire = &wireEnd{run: r, in: make(chan []byte, 1000), gone: make(chan struct{})}
	if again {
		r.put(scriptEvent{kind: "opened"})
	}
	return r.wire
}

func (c *wireEnd) Connect(context.Context) (Conn, error) { return c.run.connect(), nil }

func (c *wireEnd) Read(ctx context.Context) ([]byte, error) {
	select {
	case <-c.gone:
		return nil, ErrClosed
	case frame, ok := <-c.in:
		if !ok {
			return nil, io.EOF
		}
		return frame, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (c *wireEnd) Write(_ context.Context, frame []byte) error {
	select {
	case <-c.gone:
		return ErrClosed
	default:
	}
	c.run.put(scriptEvent{kind: "<-", json: slices.Clone(frame)})
	return nil
}

func (c *wireEnd) Close() error {
	c.once.Do(func() {
		close(c.gone)
		c.run.put(scriptEvent{kind: "closed"})
	})
	return nil
}

// serverUnderTest is a server with one connection.
type serverUnderTest struct {
	server *Server
	ss     *ServerSession
}

func newServerUnderTest(r *scriptRun, fixture map[string]string) (underTest, error) {
	opts := &ServerOptions{}
	kind := ""
	for key, value := range fixture {
		var err error
		switch key {
		case "server":
			kind = value
		case "versions":
			opts.Versions = strings.Fields(value)
		case "page":
			opts.PageSize, err = strconv.Atoi(value)
		case "instructions":
			opts.Instructions = value
		case "stateTTL":
			opts.StateTTL, err = time.ParseDuration(value)
		case "maxRounds":
			opts.MaxRounds, err = strconv.Atoi(value)
		case "keepAlive":
			opts.KeepAlive, err = time.ParseDuration(value)
		case "stateOnce":
			opts.StateOnce = true
		case "cache":
			opts.Cache = CacheHints{TTLMs: 30000, CacheScope: "public"}
		default:
			err = fmt.Errorf("no such line: %s", key)
		}
		if err != nil {
			return nil, err
		}
	}
	u := &serverUnderTest{}
	switch kind {
	case "empty":
		u.server = NewServer(Implementation{Name: "empty", Version: "1"}, opts)
	case "words":
		u.server = wordsServer(opts)
	case "kit":
		opts.Complete = kitComplete
		u.server = kitServer(opts, func(what string) { r.put(scriptEvent{kind: "saw", text: what}) })
	case "many":
		u.server = manyServer(opts)
	default:
		return nil, fmt.Errorf("no such server: %q", kind)
	}
	var err error
	u.ss, err = u.server.Connect(context.Background(), &wireEnd{run: r})
	return u, err
}

func (u *serverUnderTest) stop() { u.ss.Close() }

func (u *serverUnderTest) do(word, rest string) error {
	if word == "close" {
		return u.ss.Close()
	}
	what, arg, _ := strings.Cut(rest, " ")
	switch what { // app
	case "update":
		u.server.ResourceUpdated(arg)
	case "page-done":
		return u.ss.ElicitationComplete(context.Background(), arg)
	case "add-tool":
		u.server.AddTool(anyArguments(arg), textTool(arg))
	case "remove-tool":
		u.server.RemoveTools(arg)
	case "add-prompt":
		u.server.AddPrompt(Prompt{Name: arg}, textPrompt(arg))
	case "remove-prompt":
		u.server.RemovePrompts(arg)
	case "add-resource":
		u.server.AddResource(Resource{URI: arg, Name: arg}, textResource(arg))
	case "remove-resource":
		u.server.RemoveResources(arg)
	default:
		return fmt.Errorf("the application cannot %s", what)
	}
	return nil
}

func anyArguments(name string) Tool {
	return Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)}
}

func textTool(text string) ToolHandler {
	return func(context.Context, *Request) (*CallToolResult, error) {
		return &CallToolResult{Content: []Content{Text(text)}}, nil
	}
}

func textPrompt(text string) PromptHandler {
	return func(context.Context, *Request) (*GetPromptResult, error) {
		return &GetPromptResult{Messages: []PromptMessage{{Role: "user", Content: Text(text)}}}, nil
	}
}

func textResource(text string) ResourceHandler {
	return func(context.Context, *Request) (*ReadResourceResult, error) {
		return &ReadResourceResult{Contents: []ResourceContents{{Text: text}}}, nil
	}
}

// manyServer has five of each thing, for lists in pages.
func manyServer(opts *ServerOptions) *Server {
	s := NewServer(Implementation{Name: "many", Version: "1"}, opts)
	for _, n := range []string{"1", "2", "3", "4", "5"} {
		s.AddTool(anyArguments("t"+n), textTool(n))
		s.AddPrompt(Prompt{Name: "p" + n}, textPrompt(n))
		s.AddResource(Resource{URI: "test://r" + n, Name: "r" + n}, textResource(n))
		s.AddResourceTemplate(ResourceTemplate{URITemplate: "test://" + n + "/{x}", Name: "x" + n}, textResource(n))
	}
	return s
}

// wordsServer has one of each thing, with every member that some revision
// has: what a list shows is what the revision defines.
func wordsServer(opts *ServerOptions) *Server {
	yes, no := true, false
	size, priority := int64(5), 0.5
	icons := []Icon{{Src: "https://example.com/i.png", MIMEType: "image/png", Sizes: []string{"48x48"}, Theme: "dark"}}
	meta := Meta{"com.example/m": json.RawMessage(`1`)}
	notes := &Annotations{Audience: []Role{"user"}, Priority: &priority, LastModified: "2025-01-12T15:00:58Z"}
	s := NewServer(Implementation{
		Name: "words", Version: "1", Title: "Words", Description: "All words.", Icons: icons, WebsiteURL: "https://example.com",
	}, opts)
	s.AddTool(Tool{
		Name: "all", Title: "All", Description: "All members.",
		InputSchema:  json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer","maximum":9007199254740993}},"x-kept":[1.50]}`),
		OutputSchema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`),
		Annotations:  &ToolAnnotations{Title: "A", ReadOnlyHint: &yes, DestructiveHint: &no, IdempotentHint: &yes, OpenWorldHint: &no},
		Execution:    &ToolExecution{TaskSupport: "forbidden"}, Icons: icons, Meta: meta,
	}, func(context.Context, *Request) (*CallToolResult, error) {
		return &CallToolResult{StructuredContent: json.RawMessage(`{"n":1}`), Content: []Content{Text(`{"n":1}`)}, Meta: meta}, nil
	})
	s.AddTool(Tool{
		Name: "list", InputSchema: json.RawMessage(`{"type":"object"}`),
		OutputSchema: json.RawMessage(`{"type":"array","items":{"type":"integer"}}`),
	}, func(context.Context, *Request) (*CallToolResult, error) {
		return &CallToolResult{StructuredContent: json.RawMessage(`[1,2]`), Content: []Content{Text(`[1,2]`)}}, nil
	})
	s.AddResource(Resource{
		URI: "test://all", Name: "all", Title: "All", Description: "All members.", MIMEType: "text/plain", Size: &size,
		Annotations: notes, Icons: icons, Meta: meta,
	}, func(context.Context, *Request) (*ReadResourceResult, error) {
		return &ReadResourceResult{Contents: []ResourceContents{{Text: "words", Meta: meta}}, Meta: meta, CacheHints: CacheHints{TTLMs: 60000, CacheScope: "public"}}, nil
	})
	s.AddResourceTemplate(ResourceTemplate{
		URITemplate: "test://all/{part}", Name: "part", Title: "Part", Description: "All members.", MIMEType: "text/plain",
		Annotations: notes, Icons: icons, Meta: meta,
	}, textResource("part"))
	s.AddPrompt(Prompt{
		Name: "all", Title: "All", Description: "All members.", Icons: icons, Meta: meta,
		Arguments: []PromptArgument{{Name: "a", Title: "A", Description: "First.", Required: true}, {Name: "b"}},
	}, textPrompt("all"))
	return s
}

// kitServer has what a conversation can be about.
func kitServer(opts *ServerOptions, saw func(string)) *Server {
	s := NewServer(Implementation{Name: "kit", Version: "1"}, opts)
	AddTool(s, Tool{Name: "echo"}, func(_ context.Context, _ *Request, in struct {
		Text string `json:"text"`
	}) (string, error) {
		return in.Text, nil
	})
	AddTool(s, Tool{Name: "add"}, func(_ context.Context, _ *Request, in addIn) (addOut, error) {
		return addOut{in.A + in.B}, nil
	})
	s.AddTool(Tool{Name: "greet", InputSchema: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string","default":"you"}}}`)},
		func(_ context.Context, req *Request) (*CallToolResult, error) {
			return textResult("%s", req.Arguments), nil
		})
	s.AddTool(anyArguments("structured"), func(_ context.Context, req *Request) (*CallToolResult, error) {
		value := json.RawMessage(rawMember(req.Arguments, "value"))
		return &CallToolResult{StructuredContent: value, Content: []Content{Text(string(value))}}, nil
	})
	s.AddTool(anyArguments("whoami"), func(_ context.Context, req *Request) (*CallToolResult, error) {
		caps, err := encodeAt(nil, req.Capabilities(), rev20260728)
		return textResult("%s %s %s", req.Version(), req.Client().Name, caps), err
	})
	s.AddTool(anyArguments("content"), kitContent)
	kitTroubles(s)
	kitWork(s, saw)
	kitQuestions(s)
	kitModels(s)
	kitRounds(s)
	kitResources(s)
	kitPrompts(s)
	return s
}

// kitContent is a tool that answers with content of the kinds it is asked for.
func kitContent(_ context.Context, req *Request) (*CallToolResult, error) {
	var in struct{ Kinds []string }
	if err := json.Unmarshal(req.Arguments, &in); err != nil {
		return nil, err
	}
	priority := 1.0
	kinds := map[string]Content{
		"text":  {Type: "text", Text: "a < b & c", Annotations: &Annotations{Audience: []Role{"user"}, Priority: &priority, LastModified: "2025-01-12T15:00:58Z"}, Meta: Meta{"com.example/m": json.RawMessage("1")}},
		"image": Image([]byte("image"), "image/png"),
		"audio": Audio([]byte("audio"), "audio/wav"),
		"link":  ResourceLink(Resource{URI: "test://text", Name: "text", MIMEType: "text/plain"}),
		"doc":   EmbeddedResource(ResourceContents{URI: "test://text", MIMEType: "text/plain", Text: "words"}),
		"blob":  EmbeddedResource(ResourceContents{URI: "test://blob", MIMEType: "application/octet-stream", Blob: []byte{0, 255}}),
	}
	result := &CallToolResult{}
	for _, kind := range in.Kinds {
		result.Content = append(result.Content, kinds[kind])
	}
	return result, nil
}

// kitTroubles are tools that fail.
func kitTroubles(s *Server) {
	s.AddTool(anyArguments("fail"), func(context.Context, *Request) (*CallToolResult, error) {
		return nil, errors.New("it failed")
	})
	s.AddTool(anyArguments("crash"), func(context.Context, *Request) (*CallToolResult, error) { panic("secret") })
	s.AddTool(anyArguments("refuse"), func(context.Context, *Request) (*CallToolResult, error) {
		return nil, Errorf(7, "not today").withData(map[string]int{"retry": 1})
	})
	s.AddTool(Tool{
		Name: "liar", InputSchema: json.RawMessage(`{"type":"object"}`),
		OutputSchema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`),
	}, func(context.Context, *Request) (*CallToolResult, error) {
		return &CallToolResult{StructuredContent: json.RawMessage(`{"n":"one"}`)}, nil
	})
	s.AddTool(anyArguments("model"), func(_ context.Context, req *Request) (*CallToolResult, error) {
		err := req.RequireCapability(ClientCapabilities{Sampling: &SamplingCapability{Tools: &struct{}{}}, Roots: &RootsCapability{}})
		return textResult("fine"), err
	})
}

// kitWork are tools that take time and talk meanwhile.
func kitWork(s *Server, saw func(string)) {
	AddTool(s, Tool{Name: "sleep"}, func(ctx context.Context, _ *Request, in struct {
		Ms int64 `json:"ms"`
	}) (string, error) {
		select {
		case <-time.After(time.Duration(in.Ms) * time.Millisecond):
			return "slept", nil
		case <-ctx.Done():
			saw("sleep stopped")
			return "", ctx.Err()
		}
	})
	s.AddTool(anyArguments("work"), func(ctx context.Context, req *Request) (*CallToolResult, error) {
		total := 3.0
		for _, p := range []float64{1, 1, 0.5, 2.5, 3} { // what does not grow stays here
			req.Progress(ctx, ProgressParams{Progress: p, Total: &total, Message: fmt.Sprintf("at %v", p)})
		}
		go func() { // too late
			time.Sleep(time.Millisecond)
			req.Progress(ctx, ProgressParams{Progress: 4})
			req.Log().Error("too late")
		}()
		return textResult("worked"), nil
	})
	s.AddTool(anyArguments("log"), func(ctx context.Context, req *Request) (*CallToolResult, error) {
		for _, level := range []slog.Level{-4, 0, 2, 4, 8, 12, 16, 20} {
			req.Log().Log(ctx, level, "said", "n", 1)
		}
		return textResult("logged"), nil
	})
}

var nameForm = json.RawMessage(`{"type":"object","properties":{"name":{"type":"string","minLength":1},"age":{"type":"integer"}},"required":["name"]}`)

func asking(method string, params any) InputRequest {
	return InputRequest{Method: method, Params: mustEncode(params, rev20260728)}
}

// kitQuestions are tools that ask the user.
func kitQuestions(s *Server) {
	s.AddTool(anyArguments("ask"), func(ctx context.Context, req *Request) (*CallToolResult, error) {
		a, err := req.Elicit(ctx, "name", &ElicitParams{Message: "Who are you?", RequestedSchema: nameForm})
		if err != nil {
			return nil, err
		}
		return textResult("%s %s", a.Action, a.Content), nil
	})
	s.AddTool(anyArguments("visit"), func(ctx context.Context, req *Request) (*CallToolResult, error) {
		a, err := req.Elicit(ctx, "page", &ElicitParams{Mode: "url", Message: "Please sign in.", URL: "https://example.com/in"})
		if err != nil {
			return nil, err
		}
		return textResult("%s", a.Action), nil
	})
	s.AddTool(anyArguments("gate"), func(ctx context.Context, req *Request) (*CallToolResult, error) {
		if string(req.Arguments) == `{"open":true}` {
			return textResult("open"), nil
		}
		return nil, URLElicitationRequired(ElicitParams{Message: "Please sign in.", URL: "https://example.com/in", ElicitationID: "page-1"})
	})
}

// kitModels are tools that ask for the model and the roots of the client.
func kitModels(s *Server) {
	s.AddTool(anyArguments("unbalanced"), func(ctx context.Context, req *Request) (*CallToolResult, error) {
		p := sampleParams()
		p.Messages = append(p.Messages, SamplingMessage{Role: "assistant", Content: []Content{{Type: "tool_use", ID: "u", Name: "clock", Input: json.RawMessage("{}")}}})
		_, err := req.Sample(ctx, "model", p)
		return textResult("asked"), err
	})
	s.AddTool(anyArguments("sample"), func(ctx context.Context, req *Request) (*CallToolResult, error) {
		m, err := req.Sample(ctx, "model", sampleParams())
		if err != nil {
			return nil, err
		}
		return textResult("%s: %s", m.Model, m.Content[0].Text), nil
	})
	s.AddTool(anyArguments("sample-tools"), func(ctx context.Context, req *Request) (*CallToolResult, error) {
		p := sampleParams()
		p.Tools = []Tool{anyArguments("clock")}
		m, err := req.Sample(ctx, "model", p)
		if err != nil {
			return nil, err
		}
		return textResult("%s %s", m.StopReason, m.Content[0].Name), nil
	})
	s.AddTool(anyArguments("roots"), func(ctx context.Context, req *Request) (*CallToolResult, error) {
		roots, err := req.Roots(ctx, "roots")
		uris := []string{}
		for _, root := range roots {
			uris = append(uris, root.URI)
		}
		return textResult("%s", strings.Join(uris, " ")), err
	})
}

// kitRounds are tools that ask more than once, or several things at once.
func kitRounds(s *Server) {
	s.AddTool(anyArguments("all"), func(ctx context.Context, req *Request) (*CallToolResult, error) {
		answers, err := req.Ask(ctx, InputRequests{
			"name":  asking(methodElicit, &ElicitParams{Message: "Who are you?", RequestedSchema: nameForm}),
			"model": asking(methodCreateMessage, sampleParams()),
			"roots": {Method: methodRootsList},
		})
		return textResult("%d answers: %s", len(answers), strings.Join(slices.Sorted(maps.Keys(answers)), " ")), err
	})
	s.AddTool(anyArguments("rounds"), func(ctx context.Context, req *Request) (*CallToolResult, error) {
		var n int
		json.Unmarshal(req.State(), &n)
		req.SetState(n + 1)
		for _, key := range []string{"first", "second"} {
			if _, err := req.Elicit(ctx, key, &ElicitParams{Message: key + "?", RequestedSchema: nameForm}); err != nil {
				return nil, err
			}
		}
		return textResult("run %d", n+1), nil
	})
	s.AddTool(anyArguments("wait"), func(ctx context.Context, req *Request) (*CallToolResult, error) {
		if req.State() == nil {
			return nil, &InputRequired{State: json.RawMessage(`"again"`)}
		}
		return textResult("state %s", req.State()), nil
	})
	s.AddTool(anyArguments("endless"), func(ctx context.Context, req *Request) (*CallToolResult, error) {
		return nil, &InputRequired{State: json.RawMessage(`"again"`)}
	})
}

func sampleParams() *CreateMessageParams {
	return &CreateMessageParams{Messages: []SamplingMessage{{Role: "user", Content: []Content{Text("What time is it?")}}}, MaxTokens: 10}
}

func kitResources(s *Server) {
	s.AddResource(Resource{URI: "test://text", Name: "text", MIMEType: "text/plain"}, textResource("words"))
	s.AddResource(Resource{URI: "test://blob", Name: "blob", MIMEType: "application/octet-stream"}, func(context.Context, *Request) (*ReadResourceResult, error) {
		return &ReadResourceResult{Contents: []ResourceContents{{Blob: []byte{0, 255, 16}}}}, nil
	})
	s.AddResource(Resource{URI: "test://crash", Name: "crash"}, func(context.Context, *Request) (*ReadResourceResult, error) { panic("secret") })
	s.AddResource(Resource{URI: "test://gone", Name: "gone"}, func(context.Context, *Request) (*ReadResourceResult, error) { return nil, nil })
	s.AddResource(Resource{URI: "test://ask", Name: "ask"}, func(ctx context.Context, req *Request) (*ReadResourceResult, error) {
		a, err := req.Elicit(ctx, "name", &ElicitParams{Message: "Who are you?", RequestedSchema: nameForm})
		if err != nil {
			return nil, err
		}
		return &ReadResourceResult{Contents: []ResourceContents{{Text: a.Action}}}, nil
	})
	show := func(_ context.Context, req *Request) (*ReadResourceResult, error) {
		return &ReadResourceResult{Contents: []ResourceContents{{Text: string(mustEncode(req.Vars, rev20260728))}}}, nil
	}
	s.AddResourceTemplate(ResourceTemplate{URITemplate: "test://item/{id}", Name: "item"}, show)
	s.AddResourceTemplate(ResourceTemplate{URITemplate: "file:///docs/{+path}", Name: "doc"}, show)
}

func kitPrompts(s *Server) {
	s.AddPrompt(Prompt{Name: "hello", Arguments: []PromptArgument{{Name: "name", Required: true}, {Name: "city"}}},
		func(_ context.Context, req *Request) (*GetPromptResult, error) {
			return &GetPromptResult{Description: "Says hello.", Messages: []PromptMessage{{Role: "user", Content: Text("Hello " + req.Vars["name"])}}}, nil
		})
	s.AddPrompt(Prompt{Name: "rich"}, func(context.Context, *Request) (*GetPromptResult, error) {
		return &GetPromptResult{Messages: []PromptMessage{
			{Role: "user", Content: Image([]byte("image"), "image/png")},
			{Role: "user", Content: EmbeddedResource(ResourceContents{URI: "test://text", MIMEType: "text/plain", Text: "words"})},
			{Role: "assistant", Content: Text("I see.")},
		}}, nil
	})
	s.AddPrompt(Prompt{Name: "sound"}, func(context.Context, *Request) (*GetPromptResult, error) {
		return &GetPromptResult{Messages: []PromptMessage{{Role: "user", Content: Audio([]byte("audio"), "audio/wav")}}}, nil
	})
	s.AddPrompt(Prompt{Name: "crash"}, func(context.Context, *Request) (*GetPromptResult, error) { panic("secret") })
	s.AddPrompt(Prompt{Name: "ask"}, func(ctx context.Context, req *Request) (*GetPromptResult, error) {
		a, err := req.Elicit(ctx, "name", &ElicitParams{Message: "Who are you?", RequestedSchema: nameForm})
		if err != nil {
			return nil, err
		}
		return &GetPromptResult{Messages: []PromptMessage{{Role: "user", Content: Text(a.Action)}}}, nil
	})
}

// kitComplete completes names and cities, 150 ids, and crashes for "crash".
func kitComplete(_ context.Context, _ *Request, p *CompleteParams) (*CompleteResult, error) {
	cities := []string{"Paris", "Pau", "Rome"}
	if p.Context != nil && p.Context.Arguments["name"] == "Romulus" {
		cities = []string{"Rome"}
	}
	var ids []string
	for i := range 150 {
		ids = append(ids, fmt.Sprintf("%03d", i))
	}
	all := map[string][]string{"name": {"Ada", "Alan", "Grace"}, "city": cities, "id": ids}[p.Argument.Name]
	if p.Argument.Value == "crash" {
		panic("secret")
	}
	values := slices.DeleteFunc(all, func(v string) bool { return !strings.HasPrefix(v, p.Argument.Value) })
	return &CompleteResult{Completion: Completion{Values: values}}, nil
}

// clientUnderTest is a client and what it is told to do.
type clientUnderTest struct {
	run    *scriptRun
	client *Client

	cs      *ClientSession // once connected
	ctx     context.Context
	stopAll context.CancelFunc
	cancels map[string]context.CancelFunc // by label
	subs    map[string]*Subscription
	late    map[string]func(string) error // callbacks that wait for their answer, by method
}

func newClientUnderTest(r *scriptRun, fixture map[string]string) (underTest, error) {
	u := &clientUnderTest{
		run: r, cancels: map[string]context.CancelFunc{}, subs: map[string]*Subscription{}, late: map[string]func(string) error{},
	}
	u.ctx, u.stopAll = context.WithCancel(context.Background())
	opts := &ClientOptions{}
	for key, value := range fixture {
		if err := u.option(opts, key, value); err != nil {
			return nil, err
		}
	}
	u.client = NewClient(Implementation{Name: "client", Version: "1"}, opts)
	return u, nil
}

func (u *clientUnderTest) option(opts *ClientOptions, key, value string) (err error) {
	words := strings.Fields(value)
	switch key {
	case "client":
	case "versions":
		opts.Versions = words
	case "probeTimeout":
		opts.ProbeTimeout, err = time.ParseDuration(value)
	case "timeout":
		opts.Timeout, err = time.ParseDuration(value)
	case "maxTimeout":
		opts.MaxTimeout, err = time.ParseDuration(value)
	case "maxRounds":
		opts.MaxRounds, err = strconv.Atoi(value)
	case "cacheSize":
		opts.CacheSize, err = strconv.ParseInt(value, 10, 64)
	case "keepAlive":
		opts.KeepAlive, err = time.ParseDuration(value)
	case "capabilities":
		opts.Capabilities = new(ClientCapabilities)
		err = decodeAt([]byte(value), opts.Capabilities, rev20260728, true)
	case "hears":
		if value == "log" {
			opts.Log = func(_ context.Context, p *LogParams) {
				u.run.put(scriptEvent{kind: "log", json: mustEncode(p, rev20260728)})
			}
		}
	case "answers":
		if slices.Contains(words, "elicit") {
			opts.Elicit = func(ctx context.Context, p *ElicitParams) (*ElicitResult, error) {
				return askScript[*ElicitResult](ctx, u, methodElicit, p)
			}
		}
		if slices.Contains(words, "sample") {
			opts.Sample = func(ctx context.Context, p *CreateMessageParams) (*CreateMessageResult, error) {
				return askScript[*CreateMessageResult](ctx, u, methodCreateMessage, p)
			}
		}
		if slices.Contains(words, "roots") {
			opts.Roots = func(ctx context.Context) ([]Root, error) {
				r, err := askScript[*ListRootsResult](ctx, u, methodRootsList, struct{}{})
				if err != nil {
					return nil, err
				}
				return r.Roots, nil
			}
		}
	default:
		err = fmt.Errorf("no such line: %s", key)
	}
	return err
}

// askScript is a callback: what it is asked is an event, and the transcript has the
// answer.
func askScript[R any](ctx context.Context, u *clientUnderTest, method string, params any) (result R, err error) {
	answers := make(chan string, 1)
	reply := func(answer string) error {
		if answer == "later" {
			return nil
		}
		answers <- answer
		return nil
	}
	rev := rev20251125
	if u.cs != nil {
		rev = u.cs.link.revision()
	}
	u.run.put(scriptEvent{kind: "callback", label: method, json: mustEncode(params, rev), answer: func(answer string) error {
		u.late[method] = reply
		return reply(answer)
	}})
	select {
	case <-ctx.Done():
		u.run.put(scriptEvent{kind: "ended", text: method})
		return result, ctx.Err()
	case answer := <-answers:
		if answer == "fails" {
			return result, errors.New("secret")
		}
		if text, ok := strings.CutPrefix(answer, "error "); ok {
			peer := new(Error)
			if err := json.Unmarshal([]byte(text), peer); err != nil {
				return result, err
			}
			return result, peer
		}
		err = decodeAt([]byte(answer), &result, rev20251125, false)
		return result, err
	}
}

func (u *clientUnderTest) stop() {
	u.stopAll()
	synctest.Wait()
	if u.cs != nil {
		u.cs.Close()
	}
}

func (u *clientUnderTest) do(word, rest string) error {
	if word == "connect" {
		go func() {
			cs, err := u.client.Connect(u.ctx, &wireEnd{run: u.run})
			if err == nil {
				u.cs = cs
			}
			u.outcome("", func() any {
				info := cs.Server()
				return json.RawMessage(mustEncode(&InitializeResult{
					ProtocolVersion: info.ProtocolVersion, Capabilities: info.Capabilities, ServerInfo: info.Implementation, Instructions: info.Instructions,
				}, rev20251125))
			}, err)
		}()
		return nil
	}
	if u.cs == nil {
		return errors.New("the client is not connected")
	}
	switch word {
	case "call":
		return u.call(rest)
	case "list":
		go u.list(rest)
	case "listen":
		return u.listen(rest)
	case "unlisten":
		return u.subs[rest].Close()
	case "notify":
		method, params, _ := strings.Cut(rest, " ")
		if method == notifyRootsChanged {
			return u.cs.RootsChanged(u.ctx)
		}
		return u.cs.Notify(u.ctx, method, json.RawMessage(params))
	case "level":
		go func() { u.outcome("", func() any { return struct{}{} }, u.cs.SetLogLevel(u.ctx, LoggingLevel(rest))) }()
	case "answer":
		method, answer, _ := strings.Cut(rest, " ")
		reply := u.late[method]
		if reply == nil {
			return fmt.Errorf("%s waits for no answer", method)
		}
		return reply(answer)
	case "cancel":
		if u.cancels[rest] == nil {
			return fmt.Errorf("there is no call %q", rest)
		}
		u.cancels[rest]()
	case "close":
		return u.cs.Close()
	}
	return nil
}

// outcome notes how a call ended.
func (u *clientUnderTest) outcome(label string, result func() any, err error) {
	var peer *Error
	switch {
	case err == nil:
		u.run.put(scriptEvent{kind: "result", label: label, json: mustEncode(result(), rev20260728)})
	case errors.As(err, &peer):
		u.run.put(scriptEvent{kind: "error", label: label, json: rawMember(appendError(nil, ID{}, peer), "error")})
	default:
		u.run.put(scriptEvent{kind: "fails", label: label, text: failureWord(err)})
	}
}

// failureWord is a word for an error that did not come from the peer.
func failureWord(err error) string {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	case errors.Is(err, context.Canceled):
		return "cancelled"
	case errors.Is(err, errNoCommonVersion):
		return "version"
	case errors.Is(err, errors.ErrUnsupported):
		return "unsupported"
	case errors.Is(err, ErrClosed):
		return "closed"
	}
	return "invalid"
}

// call makes a call: "[as=NAME] [timeout=D] [max=D] [insist] [progress] METHOD PARAMS".
func (u *clientUnderTest) call(rest string) (err error) {
	var opts CallOptions
	label := ""
	for {
		word, after, _ := strings.Cut(rest, " ")
		key, value, _ := strings.Cut(word, "=")
		switch key {
		case "as":
			label = value
		case "timeout":
			opts.Timeout, err = time.ParseDuration(value)
		case "max":
			opts.MaxTimeout, err = time.ParseDuration(value)
		case "insist":
			opts.Insist = true
		case "progress":
			opts.Progress = func(p ProgressParams) {
				u.run.put(scriptEvent{kind: "progress", label: label, json: mustEncode(&p, rev20260728)})
			}
		default:
			ctx, cancel := context.WithCancel(u.ctx)
			u.cancels[label] = cancel
			go func() {
				defer cancel()
				result, err := u.request(ctx, u.cs.With(opts), word, after)
				u.outcome(label, func() any { return result }, err)
			}()
			return nil
		}
		if err != nil {
			return err
		}
		rest = after
	}
}

// request calls a method by the function of the API that is made for it.
func (u *clientUnderTest) request(ctx context.Context, cs *ClientSession, method, params string) (result any, err error) {
	switch method {
	case methodToolsCall:
		var p CallToolParams
		if err := decodeAt([]byte(params), &p, rev20260728, true); err != nil {
			return nil, err
		}
		var args any
		if p.Arguments != nil {
			args = p.Arguments
		}
		return cs.CallTool(ctx, p.Name, args)
	case methodResourcesRead:
		var p ReadResourceParams
		if err := decodeAt([]byte(params), &p, rev20260728, true); err != nil {
			return nil, err
		}
		return cs.ReadResource(ctx, p.URI)
	case methodPromptsGet:
		var p GetPromptParams
		if err := decodeAt([]byte(params), &p, rev20260728, true); err != nil {
			return nil, err
		}
		return cs.GetPrompt(ctx, p.Name, p.Arguments)
	case methodComplete:
		var p CompleteParams
		if err := decodeAt([]byte(params), &p, rev20260728, true); err != nil {
			return nil, err
		}
		return cs.Complete(ctx, &p)
	case methodPing:
		return struct{}{}, cs.Ping(ctx)
	}
	var encoded any
	if params != "" {
		encoded = json.RawMessage(params)
	}
	var raw json.RawMessage
	err = cs.Call(ctx, method, encoded, &raw)
	return raw, err
}

// list walks over all pages of a list; the result is the names.
func (u *clientUnderTest) list(method string) {
	names := []string{}
	var failed error
	add := func(name func() string, err error) {
		if failed = err; err == nil {
			names = append(names, name())
		}
	}
	switch method {
	case methodToolsList:
		for v, err := range u.cs.Tools(u.ctx) {
			add(func() string { return v.Name }, err)
		}
	case methodPromptsList:
		for v, err := range u.cs.Prompts(u.ctx) {
			add(func() string { return v.Name }, err)
		}
	case methodResourcesList:
		for v, err := range u.cs.Resources(u.ctx) {
			add(func() string { return v.URI }, err)
		}
	case methodTemplatesList:
		for v, err := range u.cs.ResourceTemplates(u.ctx) {
			add(func() string { return v.URITemplate }, err)
		}
	}
	u.outcome("", func() any { return names }, failed)
}

// listen subscribes: "NAME FILTER". What changes are events.
func (u *clientUnderTest) listen(rest string) error {
	label, filter, _ := strings.Cut(rest, " ")
	var f SubscriptionFilter
	if err := decodeAt([]byte(filter), &f, rev20260728, true); err != nil {
		return err
	}
	go func() {
		sub, err := u.cs.Listen(u.ctx, f)
		u.outcome(label, func() any { return sub.Honored }, err)
		if err != nil {
			return
		}
		u.subs[label] = sub
		for change, err := range sub.Events(u.ctx) {
			if err != nil {
				u.run.put(scriptEvent{kind: "fails", label: label, text: failureWord(err)})
				return
			}
			text := map[string]string{"method": change.Method}
			if change.URI != "" {
				text["uri"] = change.URI
			}
			u.run.put(scriptEvent{kind: "change", label: label, json: mustEncode(text, rev20260728)})
		}
		u.run.put(scriptEvent{kind: "ended", text: label})
	}()
	return nil
}
