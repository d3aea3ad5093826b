package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// The transport matrix: what a caller sees of a server must not depend on how
// they are connected. Every scenario is run by our client against our server
// over every road, and writes down what the caller saw. The account is the
// same for all roads and, unless the scenario says otherwise, for both eras.

// A road leads from a client to a server of its own, which it makes by name:
// it may run in another process.
type road struct {
	name     string
	versions []string // the revisions that can be spoken on it
	connect  func(t *testing.T, fixture string, c *Client) (*ClientSession, error)
}

var everyRevision = []string{Version20241105, Version20250326, Version20250618, Version20251125, Version20260728}

var roads = []road{
	{"memory", everyRevision, func(t *testing.T, fixture string, c *Client) (*ClientSession, error) {
		client, server := InMemory()
		return connectHere(t, fixture, c, framesTap{client, t}, framesTap{server, t})
	}},
	{"pipes", everyRevision, func(t *testing.T, fixture string, c *Client) (*ClientSession, error) {
		serverIn, clientOut := io.Pipe()
		clientIn, serverOut := io.Pipe()
		return connectHere(t, fixture, c, &Stream{Reader: clientIn, Writer: clientOut}, &Stream{Reader: serverIn, Writer: serverOut})
	}},
}

// addRoad adds a transport that is not there on every platform.
func addRoad(r road) bool {
	roads = append(roads, r)
	return true
}

// connectHere runs the server in this process.
func connectHere(t *testing.T, fixture string, c *Client, client, server Transport) (*ClientSession, error) {
	ran := make(chan error, 1)
	go func() { ran <- fixtures[fixture]().Run(context.Background(), server) }()
	t.Cleanup(func() {
		if err := soon(t, "the end of Run", ran); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	return c.Connect(t.Context(), client)
}

// fixtures are the servers of the matrix.
var fixtures = map[string]func() *Server{
	"everything": matrixServer,
	"shelf":      shelfServer,
	"bare":       func() *Server { return NewServer(Implementation{Name: "bare", Version: "0"}, nil) },
}

// shelfServer has a few of everything that can be listed.
func shelfServer() *Server {
	s := NewServer(Implementation{Name: "shelf", Version: "1"}, &ServerOptions{PageSize: 3})
	for i := range 7 {
		n := fmt.Sprint(i)
		s.AddTool(Tool{
			Name: "tool-" + n, Title: "Tool " + n, Description: "<does> & says \u2028", InputSchema: json.RawMessage(`{"type":"object","x-digits":1.10}`),
			Annotations: &ToolAnnotations{ReadOnlyHint: new(bool)}, Meta: Meta{"example.com/n": json.RawMessage(n)},
		}, func(context.Context, *Request) (*CallToolResult, error) { return nil, nil })
		s.AddPrompt(Prompt{Name: "prompt-" + n, Arguments: []PromptArgument{{Name: "a", Required: true}}},
			func(context.Context, *Request) (*GetPromptResult, error) { return nil, nil })
	}
	read := func(context.Context, *Request) (*ReadResourceResult, error) { return nil, nil }
	for i := range 6 { // two pages without a rest
		s.AddResource(Resource{URI: fmt.Sprintf("test://%d", i), Name: "r", MIMEType: "text/plain"}, read)
	}
	s.AddResourceTemplate(ResourceTemplate{URITemplate: "test://{+all}", Name: "t"}, read)
	return s
}

// matrixServer has tools for all that a server can do while it works.
func matrixServer() *Server {
	s := NewServer(Implementation{Name: "everything", Version: "1.0", Title: "All of it"}, &ServerOptions{
		Instructions: "Ask.",
		Complete: func(_ context.Context, _ *Request, p *CompleteParams) (*CompleteResult, error) {
			r := &CompleteResult{}
			for i := range 250 {
				r.Completion.Values = append(r.Completion.Values, fmt.Sprintf("%s%s%d", p.Context.Arguments["before"], p.Argument.Value, i))
			}
			return r, nil
		},
	})
	addForms(s)
	addTalkers(s)
	addAskers(s)
	addLives(s)
	addReads(s)
	return s
}

// addForms registers a tool for each form of result.
func addForms(s *Server) {
	AddTool(s, Tool{Name: "sum"}, func(_ context.Context, _ *Request, in addIn) (addOut, error) { return addOut{in.A + in.B}, nil })
	AddTool(s, Tool{Name: "string"}, func(context.Context, *Request, struct{}) (string, error) { return "text", nil })
	AddTool(s, Tool{Name: "empty"}, func(context.Context, *Request, struct{}) (string, error) { return "", nil })
	AddTool(s, Tool{Name: "content"}, func(context.Context, *Request, struct{}) (Content, error) {
		return Image([]byte{0, 1, 2}, "image/png"), nil
	})
	AddTool(s, Tool{Name: "blocks"}, func(context.Context, *Request, struct{}) ([]Content, error) {
		return []Content{
			Text("a"), Audio([]byte("b"), "audio/wav"), ResourceLink(Resource{URI: "test://c", Name: "c"}),
			EmbeddedResource(ResourceContents{URI: "test://d", Text: "d"}), EmbeddedResource(ResourceContents{URI: "test://e", Blob: []byte("e")}),
		}, nil
	})
	AddTool(s, Tool{Name: "whole"}, func(context.Context, *Request, struct{}) (*CallToolResult, error) {
		return &CallToolResult{Content: []Content{Text("own words")}, StructuredContent: json.RawMessage(`{"n":9007199254740993,"x":1.10,"big":1e309}`),
			Meta: Meta{"example.com/m": json.RawMessage(`1.10`)}}, nil
	})
	AddTool(s, Tool{Name: "nothing"}, func(context.Context, *Request, struct{}) (*CallToolResult, error) { return nil, nil })
	AddTool(s, Tool{Name: "fails"}, func(context.Context, *Request, struct{}) (string, error) { return "", errors.New("no luck") })
	AddTool(s, Tool{Name: "refuses"}, func(context.Context, *Request, struct{}) (string, error) {
		return "", &Error{Code: 7001, Message: "not today", Data: json.RawMessage(`{"day":1.10}`)}
	})
	AddTool(s, Tool{Name: "panics"}, func(context.Context, *Request, struct{}) (string, error) { panic("a secret") })
	rawTool(s, "echo", func(_ context.Context, req *Request) (*CallToolResult, error) {
		return &CallToolResult{Content: []Content{Text(string(req.Arguments))}}, nil
	})
	AddTool(s, Tool{Name: "who"}, func(_ context.Context, req *Request, _ struct{}) (string, error) {
		var own json.RawMessage
		req.Meta().Get("example.com/own", &own)
		caps := req.Capabilities()
		return fmt.Sprintf("%s %s %s elicitation=%t sampling=%t roots=%t", req.Client().Name, req.Client().Version, own,
			caps.Elicitation != nil, caps.Sampling != nil, caps.Roots != nil), nil
	})
	s.Handle("x/custom", func(_ context.Context, req *Request) (any, error) {
		return map[string]string{"name": rawString(req.Params, "name")}, nil
	})
}

func rawString(object []byte, name string) string {
	text, _ := stringValue(rawMember(object, name))
	return text
}

// addTalkers registers tools that say something while they run.
func addTalkers(s *Server) {
	AddTool(s, Tool{Name: "steps"}, func(ctx context.Context, req *Request, in struct {
		Pad int `json:"pad,omitempty"`
	}) (string, error) {
		total := 2.5
		for _, p := range []float64{0, 0.25, 0.25, 0.1, 2.5} {
			if err := req.Progress(ctx, ProgressParams{Progress: p, Total: &total, Message: fmt.Sprint("at ", p, strings.Repeat("x", in.Pad))}); err != nil {
				return "", err
			}
		}
		return "done", nil
	})
	AddTool(s, Tool{Name: "speaks"}, func(ctx context.Context, req *Request, _ struct{}) (string, error) {
		log := req.Log().With("who", "tool")
		for _, level := range []slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError} {
			log.Log(ctx, level, "said", "n", int64(9007199254740993))
		}
		return "said", nil
	})
}

// addAskers registers what asks the client something before it answers.
func addAskers(s *Server) {
	form := json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`)
	elicit := func(ctx context.Context, req *Request, message string) (string, error) {
		r, err := req.Elicit(ctx, "k", &ElicitParams{Message: message, RequestedSchema: form})
		if err != nil {
			return "", err
		}
		return r.Action + " " + string(r.Content), nil
	}
	AddTool(s, Tool{Name: "elicits"}, func(ctx context.Context, req *Request, in struct {
		Message string `json:"message,omitempty"`
	}) (string, error) {
		return elicit(ctx, req, in.Message)
	})
	AddTool(s, Tool{Name: "opens"}, func(ctx context.Context, req *Request, _ struct{}) (string, error) {
		r, err := req.Elicit(ctx, "k", &ElicitParams{Mode: "url", Message: "Look", URL: "https://example.com/x"})
		if err != nil {
			return "", err
		}
		return r.Action, nil
	})
	AddTool(s, Tool{Name: "samples"}, func(ctx context.Context, req *Request, _ struct{}) (string, error) {
		r, err := req.Sample(ctx, "k", &CreateMessageParams{Messages: []SamplingMessage{{Role: "user", Content: []Content{Text("hi")}}}, SystemPrompt: "short", MaxTokens: 5})
		if err != nil {
			return "", err
		}
		return r.Model + ": " + contentText(r.Content), nil
	})
	AddTool(s, Tool{Name: "roots"}, func(ctx context.Context, req *Request, _ struct{}) (string, error) {
		roots, err := req.Roots(ctx, "k")
		return fmt.Sprintf("%d %v", len(roots), roots), err
	})
	AddTool(s, Tool{Name: "several"}, func(ctx context.Context, req *Request, _ struct{}) (string, error) {
		answers, err := req.Ask(ctx, InputRequests{
			"a": {Method: methodElicit, Params: json.RawMessage(`{"message":"one","requestedSchema":{"type":"object","properties":{}}}`)},
			"b": {Method: methodElicit, Params: json.RawMessage(`{"message":"two","requestedSchema":{"type":"object","properties":{}}}`)},
			"c": {Method: methodRootsList, Params: json.RawMessage(`{}`)},
		})
		return fmt.Sprintf("%s %s %s", answers["a"], answers["b"], answers["c"]), err
	})
	AddTool(s, Tool{Name: "rounds"}, roundsTool)
	s.AddPrompt(Prompt{Name: "asking"}, func(ctx context.Context, req *Request) (*GetPromptResult, error) {
		text, err := elicit(ctx, req, "accept")
		return &GetPromptResult{Messages: []PromptMessage{{Role: "user", Content: Text(text)}}}, err
	})
	s.AddResource(Resource{URI: "test://asking", Name: "asking"}, func(ctx context.Context, req *Request) (*ReadResourceResult, error) {
		text, err := elicit(ctx, req, "accept")
		return &ReadResourceResult{Contents: []ResourceContents{{Text: text}}}, err
	})
}

// roundsTool asks thrice, the second time for nothing, and keeps count in its
// state.
func roundsTool(_ context.Context, req *Request, _ struct{}) (string, error) {
	n := 0
	if state := req.State(); state != nil {
		if err := json.Unmarshal(state, &n); err != nil {
			return "", err
		}
	}
	need := &InputRequired{State: json.RawMessage(fmt.Sprint(n + 1))}
	switch n {
	case 0, 2:
		need.Requests = InputRequests{fmt.Sprint("k", n): {Method: methodRootsList, Params: json.RawMessage(`{}`)}}
	case 3:
		answers, err := req.Ask(context.Background(), InputRequests{"k0": {}, "k2": {}})
		return fmt.Sprintf("%d rounds, %d answers", n, len(answers)), err
	}
	return "", need
}

// addLives registers tools about the lives of calls and of the session.
func addLives(s *Server) {
	ends, began := make(chan string, 16), make(chan string, 16)
	AddTool(s, Tool{Name: "waits"}, func(ctx context.Context, req *Request, _ struct{}) (string, error) {
		req.Progress(ctx, ProgressParams{})
		began <- "waits"
		<-ctx.Done()
		ends <- context.Cause(ctx).Error()
		return "too late", nil
	})
	AddTool(s, Tool{Name: "naps"}, func(ctx context.Context, req *Request, _ struct{}) (string, error) {
		req.Progress(ctx, ProgressParams{})
		began <- "naps"
		select { // a server finishes what it is at, within a bound
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
		}
		return "too late", nil
	})
	for name, heard := range map[string]chan string{"ended": ends, "began": began} {
		AddTool(s, Tool{Name: name}, func(ctx context.Context, _ *Request, _ struct{}) (string, error) {
			select {
			case what := <-heard:
				return what, nil
			case <-ctx.Done():
				return "", ctx.Err()
			}
		})
	}
	var mu sync.Mutex
	met, all := 0, make(chan struct{})
	AddTool(s, Tool{Name: "meets"}, func(ctx context.Context, _ *Request, _ struct{}) (string, error) {
		mu.Lock()
		if met++; met == 40 {
			close(all)
		}
		mu.Unlock()
		select {
		case <-all:
			return "met", nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	})
	AddTool(s, Tool{Name: "leaves"}, func(_ context.Context, req *Request, _ struct{}) (string, error) {
		return "unheard", req.Session().Close()
	})
	notes := make(chan string, 16)
	s.Use(func(next Handler) Handler {
		return func(ctx context.Context, req *Request) (any, error) {
			if req.ID.IsZero() && strings.HasPrefix(req.Method, "x/") {
				notes <- req.Method + " " + rawString(req.Params, "name")
			}
			return next(ctx, req)
		}
	})
	AddTool(s, Tool{Name: "heard"}, func(ctx context.Context, _ *Request, _ struct{}) (string, error) {
		select {
		case note := <-notes:
			return note, nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	})
}

// addReads registers resources, a prompt, and a tool that changes them.
func addReads(s *Server) {
	s.AddResource(Resource{URI: "test://several", Name: "several", MIMEType: "text/plain"}, func(context.Context, *Request) (*ReadResourceResult, error) {
		return &ReadResourceResult{Contents: []ResourceContents{{Text: ""}, {URI: "test://blob", MIMEType: "a/b", Blob: []byte{255, 0}}, {URI: "test://none", Blob: []byte{}}}}, nil
	})
	s.AddResourceTemplate(ResourceTemplate{URITemplate: "test://users/{name}{?of,by}", Name: "user"}, func(_ context.Context, req *Request) (*ReadResourceResult, error) {
		return &ReadResourceResult{Contents: []ResourceContents{{Text: fmt.Sprintf("%q %q", req.Vars["name"], req.Vars["by"])}}}, nil
	})
	s.AddPrompt(Prompt{Name: "greet", Arguments: []PromptArgument{{Name: "name", Required: true}, {Name: "how"}}}, func(_ context.Context, req *Request) (*GetPromptResult, error) {
		how, given := req.Vars["how"]
		return &GetPromptResult{Description: "greets", Messages: []PromptMessage{
			{Role: "user", Content: Text("hi " + req.Vars["name"])}, {Role: "assistant", Content: Text(fmt.Sprintf("%q %t", how, given))},
		}}, nil
	})
	read := func(context.Context, *Request) (*ReadResourceResult, error) { return nil, nil }
	AddTool(s, Tool{Name: "change"}, func(_ context.Context, _ *Request, in struct {
		What string `json:"what"`
		Name string `json:"name"`
	}) (string, error) {
		switch in.What {
		case "tools":
			for range 50 {
				rawTool(s, in.Name, func(context.Context, *Request) (*CallToolResult, error) { return nil, nil })
			}
		case "prompts":
			s.RemovePrompts(in.Name)
		case "resources":
			s.AddResource(Resource{URI: in.Name, Name: "new"}, read)
		case "content":
			s.ResourceUpdated(in.Name)
		}
		return "changed", nil
	})
}

// A visit is one run of a scenario: over one road, at one revision.
type visit struct {
	t       *testing.T
	ctx     context.Context
	road    road
	version string
	mu      sync.Mutex
	account strings.Builder
}

// connect opens a session with a fixture.
func (v *visit) connect(fixture string, opts ClientOptions) *ClientSession {
	v.t.Helper()
	opts.Versions = []string{v.version}
	cs, err := v.road.connect(v.t, fixture, NewClient(Implementation{Name: "visitor", Version: "2.0"}, &opts))
	if err != nil {
		v.t.Fatal(err)
	}
	v.t.Cleanup(func() { cs.Close() })
	return cs
}

// say writes a line of the account.
func (v *visit) say(format string, args ...any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	fmt.Fprintf(&v.account, format+"\n", args...)
}

// saw writes down a result, without what the envelope of its revision adds,
// or an error.
func (v *visit) saw(what string, result any, err error) {
	if err != nil {
		v.say("%s: %s", what, describe(err))
		return
	}
	v.say("%s: %s", what, v.bare(result))
}

// call calls a tool and writes down what came of it.
func (v *visit) call(cs *ClientSession, name string, args any) {
	r, err := cs.CallTool(v.ctx, name, args)
	v.saw(name, r, err)
}

// during calls a tool and does something when that runs, for roads on which
// the tool cannot say so itself. It returns how the call ended, when both have.
func (v *visit) during(ctx context.Context, cs *ClientSession, tool string, do func()) error {
	done := make(chan bool)
	go func() {
		defer close(done)
		if _, err := cs.CallTool(v.ctx, "began", nil); err != nil {
			v.t.Errorf("began: %v", err)
		}
		do()
	}()
	_, err := cs.CallTool(ctx, tool, nil)
	<-done
	return err
}

// bare is the JSON of a result, without its envelope.
func (v *visit) bare(result any) string {
	raw, err := encodeAt(nil, result, rev20260728)
	if err != nil {
		v.t.Fatal(err)
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(raw, &object) != nil || object == nil {
		return string(raw)
	}
	for _, name := range []string{"resultType", "ttlMs", "cacheScope"} {
		delete(object, name)
	}
	var meta Meta
	if json.Unmarshal(object["_meta"], &meta) == nil {
		delete(meta, metaServerInfo)
		if delete(object, "_meta"); len(meta) > 0 {
			object["_meta"], _ = encodeAt(nil, meta, rev20260728)
		}
	}
	text, err := encodeAt(nil, object, rev20260728)
	if err != nil {
		v.t.Fatal(err)
	}
	return string(text)
}

// describe says what a caller can tell of an error.
func describe(err error) string {
	var peer *Error
	var tool *ToolError
	switch {
	case errors.As(err, &peer):
		return strings.TrimSpace(fmt.Sprintf("refused with %d %s", peer.Code, peer.Data))
	case errors.As(err, &tool):
		return "failed: " + tool.Error()
	case errors.Is(err, ErrClosed):
		return "closed"
	case errors.Is(err, errors.ErrUnsupported):
		return "unsupported"
	case errors.Is(err, context.Canceled):
		return "cancelled"
	case errors.Is(err, context.DeadlineExceeded):
		return "too late"
	}
	return "error: " + err.Error()
}

// events writes down the changes that a subscription tells of, sorted and
// each once, up to the last one that is waited for.
func (v *visit) events(sub *Subscription, last Change) {
	var seen []string
	for c, err := range sub.Events(v.ctx) {
		if err != nil {
			v.say("events: %s", describe(err))
			return
		}
		if line := strings.TrimSpace(c.Method + " " + c.URI); !slices.Contains(seen, line) {
			seen = append(seen, line)
		}
		if c == last {
			break
		}
	}
	slices.Sort(seen)
	v.say("events: %s", strings.Join(seen, ", "))
}

// A limit is what a road cannot do, by design, in one scenario.
type limit struct {
	roads    string // their names, between commas
	era      string // "legacy", "modern" or "both"
	scenario string
	why      string
	run      func(v *visit) // instead of the scenario's, nil for the same
	want     string         // what the caller sees instead
}

// limits are those of roads that are not there on every platform.
var limits []limit

// limitOf returns the limit of a road in a scenario, nil if there is none.
func (v *visit) limitOf(scenario string) *limit {
	era := "legacy"
	if v.version == Version20260728 {
		era = "modern"
	}
	at := slices.IndexFunc(limits, func(l limit) bool {
		return l.scenario == scenario && (l.era == era || l.era == "both") && slices.Contains(strings.Split(l.roads, ", "), v.road.name)
	})
	if at < 0 {
		return nil
	}
	return &limits[at]
}

// A scenario is something that a caller can live through.
type scenario struct {
	name   string
	shows  []string
	run    func(v *visit)
	want   string
	modern string // instead of want, where the eras differ
}

func TestMatrix(t *testing.T) {
	for _, road := range roads {
		t.Run(road.name, func(t *testing.T) {
			for _, version := range road.versions {
				if version == Version20251125 || version == Version20260728 { // the newest of each era
					t.Run(version, func(t *testing.T) { visitAll(t, road, version) })
				}
			}
		})
	}
}

func visitAll(t *testing.T, road road, version string) {
	for _, c := range scenarios {
		t.Run(c.name, func(t *testing.T) {
			shows(t, c.shows...)
			leakCheck(t)
			ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
			defer cancel()
			v := &visit{t: t, ctx: ctx, road: road, version: version}
			want, run := c.want, c.run
			if c.modern != "" && version == Version20260728 {
				want = c.modern
			}
			if l := v.limitOf(c.name); l != nil {
				t.Logf("%s cannot do all of it: %s", road.name, l.why)
				if want = l.want; l.run != nil {
					run = l.run
				}
			}
			run(v)
			if got := v.account.String(); got != strings.TrimPrefix(want, "\n") {
				t.Errorf("the caller saw\n%s\nand should have seen\n%s", got, want)
			}
		})
	}
}

// Every revision can be spoken on every road.
func TestMatrixRevisions(t *testing.T) {
	shows(t, "version.dual.initialize", "lifecycle.version.server-echo", "lifecycle.op.version", "transport.custom.allowed")
	for _, road := range roads {
		for _, version := range road.versions {
			t.Run(road.name+" "+version, func(t *testing.T) {
				leakCheck(t)
				v := &visit{t: t, ctx: t.Context(), road: road, version: version}
				cs := v.connect("everything", ClientOptions{})
				if got := cs.Server(); got.ProtocolVersion != version || got.Name != "everything" {
					t.Errorf("server %+v", got)
				}
				v.call(cs, "string", nil)
				v.call(cs, "fails", nil)
				v.call(cs, "panics", nil)
				want := `string: {"content":[{"type":"text","text":"text"}]}
fails: {"content":[{"type":"text","text":"no luck"}],"isError":true}
panics: refused with -32603
`
				if got := v.account.String(); got != want {
					t.Errorf("the caller saw\n%s", got)
				}
			})
		}
	}
}

var scenarios = []scenario{
	{"the server introduces itself", []string{"lifecycle.init.result", "discover.result.shape", "discover.result.instructions", "caps.advertise"}, func(v *visit) {
		s := v.connect("everything", ClientOptions{}).Server()
		v.say("%s %s %s %s", s.Name, s.Version, s.Title, s.Instructions)
		v.say("%s", v.bare(s.Capabilities))
		s = v.connect("bare", ClientOptions{}).Server()
		v.say("%s %s %s", s.Name, s.Version, v.bare(s.Capabilities))
	}, `
everything 1.0 All of it Ask.
{"completions":{},"logging":{},"prompts":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},"tools":{"listChanged":true}}
bare 0 {"logging":{}}
`, ""},
	{"lists of several pages", []string{"tools.list.respond", "prompts.list.respond", "resources.list.respond", "pagination.both", "pagination.operations"}, func(v *visit) {
		cs := v.connect("shelf", ClientOptions{})
		for tool, err := range cs.Tools(v.ctx) {
			v.saw("tool", tool, err)
		}
		for prompt, err := range cs.Prompts(v.ctx) {
			v.saw("prompt", prompt, err)
		}
		for resource, err := range cs.Resources(v.ctx) {
			v.saw("resource", resource, err)
		}
		for template, err := range cs.ResourceTemplates(v.ctx) {
			v.saw("template", template, err)
		}
	}, shelfLists(), ""},
	{"pages by hand", []string{"pagination.end", "pagination.invalid", "caching.page.invalid-cursor"}, func(v *visit) {
		cs := v.connect("shelf", ClientOptions{})
		for _, method := range []string{methodToolsList, methodPromptsList, methodResourcesList, methodTemplatesList} {
			var pages []string
			var p ListParams
			for {
				var page struct {
					NextCursor *string `json:"nextCursor,omitzero"`
				}
				if err := cs.Call(v.ctx, method, &p, &page); err != nil {
					v.t.Fatal(err)
				}
				pages = append(pages, fmt.Sprint(page.NextCursor != nil))
				if p.Cursor = page.NextCursor; p.Cursor == nil {
					break
				}
			}
			v.say("%s: %s", method, strings.Join(pages, " "))
			for _, cursor := range []any{"made up", "", 7} {
				v.saw(method, nil, cs.Call(v.ctx, method, map[string]any{"cursor": cursor}, nil))
			}
		}
	}, `
tools/list: true true false
tools/list: refused with -32602
tools/list: refused with -32602
tools/list: refused with -32602
prompts/list: true true false
prompts/list: refused with -32602
prompts/list: refused with -32602
prompts/list: refused with -32602
resources/list: true false
resources/list: refused with -32602
resources/list: refused with -32602
resources/list: refused with -32602
resources/templates/list: false
resources/templates/list: refused with -32602
resources/templates/list: refused with -32602
resources/templates/list: refused with -32602
`, ""},
	{"results of every form", []string{"tools.content.audio", "tools.content.embedded", "tools.content.resource-link", "tools.structured.text"}, func(v *visit) {
		cs := v.connect("everything", ClientOptions{})
		for _, tool := range []string{"string", "empty", "content", "blocks", "nothing", "whole"} {
			v.call(cs, tool, nil)
		}
		v.call(cs, "sum", addIn{9007199254740993, 1})
	}, `
string: {"content":[{"type":"text","text":"text"}]}
empty: {"content":[{"type":"text","text":""}]}
content: {"content":[{"type":"image","data":"AAEC","mimeType":"image/png"}]}
blocks: {"content":[{"type":"text","text":"a"},{"type":"audio","data":"Yg==","mimeType":"audio/wav"},{"type":"resource_link","uri":"test://c","name":"c"},{"type":"resource","resource":{"uri":"test://d","text":"d"}},{"type":"resource","resource":{"uri":"test://e","blob":"ZQ=="}}]}
nothing: {"content":[]}
whole: {"_meta":{"example.com/m":1.10},"content":[{"type":"text","text":"own words"}],"structuredContent":{"n":9007199254740993,"x":1.10,"big":1e309}}
sum: {"content":[{"type":"text","text":"{\"sum\":9007199254740994}"}],"structuredContent":{"sum":9007199254740994}}
`, ""},
	{"results as Go values", []string{"tools.output.conform"}, func(v *visit) {
		cs := v.connect("everything", ClientOptions{})
		sum, err := CallTool[addOut](v.ctx, cs, "sum", addIn{9007199254740993, 1})
		v.say("%d %v", sum.Sum, err)
		text, err := CallTool[string](v.ctx, cs, "blocks", nil)
		v.say("%s %v", text, err)
		blocks, err := CallTool[[]Content](v.ctx, cs, "blocks", nil)
		v.say("%d %v", len(blocks), err)
		whole, err := CallTool[struct {
			N json.Number `json:"n"`
			X json.Number `json:"x"`
		}](v.ctx, cs, "whole", nil)
		v.say("%s %s %v", whole.N, whole.X, err)
		_, err = CallTool[string](v.ctx, cs, "fails", nil)
		v.say("%s", describe(err))
	}, `
9007199254740994 <nil>
a <nil>
5 <nil>
9007199254740993 1.10 <nil>
failed: mcp: no luck
`, ""},
	{"arguments arrive as they were", []string{"transport.utf8", "stdio.framing"}, func(v *visit) {
		cs := v.connect("everything", ClientOptions{})
		for _, args := range []any{nil, map[string]any{}, json.RawMessage(`{"id":9007199254740993,"x":1.10,"big":1e309,"neg":-0}`),
			json.RawMessage("{\n\t\"lines\": [\n1,\r\n2]\n}"), map[string]string{"s": "a\u2028b\u0085c\x00\r\n\x1c😀</script>&"}} {
			text, err := CallTool[string](v.ctx, cs, "echo", args)
			v.say("%s %v", text, err)
		}
	}, `
{} <nil>
{} <nil>
{"id":9007199254740993,"x":1.10,"big":1e309,"neg":-0} <nil>
{"lines":[1,2]} <nil>
{"s":"a\u2028b` + "\u0085" + `c\u0000\r\n\u001c😀</script>&"} <nil>
`, ""},
	{"arguments that do not fit", []string{"tools.error.invalid-args", "tools.error.execution"}, func(v *visit) {
		cs := v.connect("everything", ClientOptions{})
		for _, args := range []string{`{"a":1}`, `{"a":"1","b":2}`, `{"a":1,"b":2,"c":3}`, `{"A":1,"b":2}`, `{"a":1.5,"b":2}`, `{"a":9223372036854775808,"b":0}`, `{"a":null,"b":0}`} {
			r, err := cs.CallTool(v.ctx, "sum", json.RawMessage(args))
			v.say("%s: %t %v", args, err == nil && r.IsError && contentText(r.Content) != "", err)
		}
		v.call(cs, "fails", nil)
	}, `
{"a":1}: true <nil>
{"a":"1","b":2}: true <nil>
{"a":1,"b":2,"c":3}: true <nil>
{"A":1,"b":2}: true <nil>
{"a":1.5,"b":2}: true <nil>
{"a":9223372036854775808,"b":0}: true <nil>
{"a":null,"b":0}: true <nil>
fails: {"content":[{"type":"text","text":"no luck"}],"isError":true}
`, ""},
	{"refusals", []string{"tools.error.unknown", "prompts.error.name", "prompts.error.args", "resources.error.not-found", "errors.method-not-found", "errors.internal", "errors.app.range"}, func(v *visit) {
		cs := v.connect("everything", ClientOptions{})
		v.call(cs, "no such tool", nil)
		v.call(cs, "refuses", nil)
		v.call(cs, "panics", nil)
		_, err := cs.GetPrompt(v.ctx, "no such prompt", nil)
		v.saw("prompt", nil, err)
		_, err = cs.GetPrompt(v.ctx, "greet", nil)
		v.saw("argument", nil, err)
		_, err = cs.ReadResource(v.ctx, "test://users")
		v.saw("resource", nil, err)
		_, err = cs.ReadResource(v.ctx, "users")
		v.saw("no URI", nil, err)
		v.saw("method", nil, cs.Call(v.ctx, "x/unknown", nil, nil))
		v.saw("array", nil, cs.Call(v.ctx, methodToolsCall, map[string]any{"name": "echo", "arguments": []int{1}}, nil))
		v.saw("nameless", nil, cs.Call(v.ctx, methodToolsCall, map[string]any{"arguments": map[string]any{}}, nil))
		v.saw("still there", nil, cs.Ping(v.ctx))
		v.saw("absent capability", nil, v.connect("bare", ClientOptions{}).Call(v.ctx, methodToolsList, nil, nil))
	}, `
no such tool: refused with -32602
refuses: refused with 7001 {"day":1.10}
panics: refused with -32603
prompt: refused with -32602
argument: refused with -32602
resource: refused with -32602 {"uri":"test://users"}
no URI: refused with -32602
method: refused with -32601
array: refused with -32602
nameless: refused with -32602
still there: null
absent capability: refused with -32601
`, ""},
	{"methods of the other era", []string{"ping.removed", "logging.set-level.removed", "resources.subscribe.removed"}, func(v *visit) {
		cs := v.connect("everything", ClientOptions{})
		v.saw("ping", nil, cs.Call(v.ctx, methodPing, nil, nil))
		v.saw("level", nil, cs.Call(v.ctx, methodSetLevel, &SetLevelParams{Level: "info"}, nil))
		v.saw("subscribe", nil, cs.Call(v.ctx, methodSubscribe, &SubscribeParams{URI: "test://several"}, nil))
		v.saw("discover", nil, cs.Call(v.ctx, methodDiscover, nil, nil))
		v.saw("initialize", nil, cs.Call(v.ctx, methodPing, nil, nil))
	}, `
ping: null
level: null
subscribe: null
discover: refused with -32601
initialize: null
`, `
ping: refused with -32601
level: refused with -32601
subscribe: refused with -32601
discover: null
initialize: refused with -32601
`},
	{"a method of one's own", []string{"base.result.open-shape"}, func(v *visit) {
		cs := v.connect("everything", ClientOptions{})
		var result json.RawMessage
		err := cs.Call(v.ctx, "x/custom", map[string]string{"name": "é"}, &result)
		v.saw("custom", result, err)
		v.saw("custom, result unread", nil, cs.Call(v.ctx, "x/custom", nil, nil))
	}, `
custom: {"name":"é"}
custom, result unread: null
`, ""},
	{"a notification of one's own", []string{"base.notif.no-response"}, func(v *visit) {
		cs := v.connect("everything", ClientOptions{})
		for _, name := range []string{"one", "two"} {
			v.saw("sent", nil, cs.Notify(v.ctx, "x/note", map[string]string{"name": name}))
		}
		v.call(cs, "heard", nil)
		v.call(cs, "heard", nil)
	}, `
sent: null
sent: null
heard: {"content":[{"type":"text","text":"x/note one"}]}
heard: {"content":[{"type":"text","text":"x/note two"}]}
`, ""},
	{"the client introduces itself", []string{"meta.request.client-info", "lifecycle.init.request"}, func(v *visit) {
		opts := answering()
		opts.Sample = nil
		cs := v.connect("everything", opts).With(CallOptions{Meta: Meta{"example.com/own": json.RawMessage(`{"a":1.10}`)}})
		v.call(cs, "who", nil)
	}, `
who: {"content":[{"type":"text","text":"visitor 2.0 {\"a\":1.10} elicitation=true sampling=false roots=true"}]}
`, ""},
	{"progress", []string{"progress.increasing", "progress.float", "progress.only-active", "progress.stop"}, func(v *visit) {
		cs := v.connect("everything", ClientOptions{})
		v.call(cs, "steps", nil) // not asked for
		cs = cs.With(CallOptions{Meta: Meta{"example.com/own": json.RawMessage(`1`)}, Progress: func(p ProgressParams) { v.say("%v of %v: %s", p.Progress, *p.Total, p.Message) }})
		v.call(cs, "steps", nil)
		v.call(cs, "who", nil)
	}, `
steps: {"content":[{"type":"text","text":"done"}]}
0 of 2.5: at 0
0.25 of 2.5: at 0.25
2.5 of 2.5: at 2.5
steps: {"content":[{"type":"text","text":"done"}]}
who: {"content":[{"type":"text","text":"visitor 2.0 1 elicitation=false sampling=false roots=false"}]}
`, ""},
	{"log messages", []string{"logging.levels", "logging.threshold", "logging.stream"}, func(v *visit) {
		said := make(chan *LogParams, 64)
		cs := v.connect("everything", ClientOptions{Log: func(_ context.Context, p *LogParams) { said <- p }})
		for _, level := range []LoggingLevel{"warning", "debug", "emergency", "error"} {
			v.saw(string(level), nil, cs.SetLogLevel(v.ctx, level))
			v.call(cs, "speaks", nil)
			for len(said) > 0 { // all that came before the result

				v.saw("log", <-said, nil)
			}
		}
		v.say("%v", cs.SetLogLevel(v.ctx, "loud") != nil)
	}, `
warning: null
speaks: {"content":[{"type":"text","text":"said"}]}
log: {"data":{"msg":"said","who":"tool","n":9007199254740993},"level":"warning"}
log: {"data":{"msg":"said","who":"tool","n":9007199254740993},"level":"error"}
debug: null
speaks: {"content":[{"type":"text","text":"said"}]}
log: {"data":{"msg":"said","who":"tool","n":9007199254740993},"level":"debug"}
log: {"data":{"msg":"said","who":"tool","n":9007199254740993},"level":"info"}
log: {"data":{"msg":"said","who":"tool","n":9007199254740993},"level":"warning"}
log: {"data":{"msg":"said","who":"tool","n":9007199254740993},"level":"error"}
emergency: null
speaks: {"content":[{"type":"text","text":"said"}]}
error: null
speaks: {"content":[{"type":"text","text":"said"}]}
log: {"data":{"msg":"said","who":"tool","n":9007199254740993},"level":"error"}
true
`, ""},
	{"a call given up", []string{"cancel.send", "cancel.receiver.stop", "cancel.receiver.no-response", "stdio.cancel.notify"}, func(v *visit) {
		cs := v.connect("everything", ClientOptions{})
		ctx, cancel := context.WithCancel(v.ctx)
		v.saw("waits", nil, v.during(ctx, cs, "waits", cancel))
		v.call(cs, "ended", nil)
		_, err := cs.CallTool(ctx, "waits", nil) // nothing is sent
		v.saw("waits", nil, err)
		v.call(cs, "string", nil)
	}, `
waits: cancelled
ended: {"content":[{"type":"text","text":"mcp: cancelled by the peer: context canceled"}]}
waits: cancelled
string: {"content":[{"type":"text","text":"text"}]}
`, ""},
	{"a call that takes too long", []string{"timeout.set", "timeout.cancel", "timeout.configurable", "tools.client.timeout"}, func(v *visit) {
		cs := v.connect("everything", ClientOptions{})
		_, err := cs.With(CallOptions{Timeout: 50 * time.Millisecond}).CallTool(v.ctx, "waits", nil)
		v.saw("waits", nil, err)
		v.call(cs, "ended", nil)
		ctx, cancel := context.WithTimeout(v.ctx, 50*time.Millisecond)
		defer cancel()
		_, err = cs.CallTool(ctx, "waits", nil)
		v.saw("waits", nil, err)
		v.call(cs, "ended", nil)
		v.call(cs, "string", nil)
	}, `
waits: too late
ended: {"content":[{"type":"text","text":"mcp: cancelled by the peer: no answer within 50ms: context deadline exceeded"}]}
waits: too late
ended: {"content":[{"type":"text","text":"mcp: cancelled by the peer: context deadline exceeded"}]}
string: {"content":[{"type":"text","text":"text"}]}
`, ""},
	{"questions to the user", []string{"elicit.result.content", "elicit.decline", "elicit.form.server-validate", "elicit.message"}, func(v *visit) {
		cs := v.connect("everything", ClientOptions{Elicit: func(_ context.Context, p *ElicitParams) (*ElicitResult, error) {
			v.say("asked %s %s", p.Message, p.RequestedSchema)
			return &ElicitResult{Action: p.Message, Content: json.RawMessage(`{"n":9007199254740993}`)}, nil
		}})
		for _, answer := range []string{"accept", "decline", "cancel"} {
			v.call(cs, "elicits", map[string]string{"message": answer})
		}
		prompt, err := cs.GetPrompt(v.ctx, "asking", nil)
		v.saw("prompt", prompt, err)
		resource, err := cs.ReadResource(v.ctx, "test://asking")
		v.saw("resource", resource, err)
	}, `
asked accept {"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}
elicits: {"content":[{"type":"text","text":"accept {\"n\":9007199254740993}"}]}
asked decline {"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}
elicits: {"content":[{"type":"text","text":"decline "}]}
asked cancel {"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}
elicits: {"content":[{"type":"text","text":"cancel "}]}
asked accept {"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}
prompt: {"messages":[{"role":"user","content":{"type":"text","text":"accept {\"n\":9007199254740993}"}}]}
asked accept {"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}
resource: {"contents":[{"uri":"test://asking","text":"accept {\"n\":9007199254740993}"}]}
`, ""},
	{"a page for the user", []string{"elicit.caps"}, func(v *visit) {
		cs := v.connect("everything", ClientOptions{
			Capabilities: &ClientCapabilities{Elicitation: &ElicitationCapability{URL: &struct{}{}}},
			Elicit: func(_ context.Context, p *ElicitParams) (*ElicitResult, error) {
				v.say("asked %s %s %s", p.Mode, p.Message, p.URL)
				return &ElicitResult{Action: "accept"}, nil
			},
		})
		v.call(cs, "opens", nil)
	}, `
asked url Look https://example.com/x
opens: {"content":[{"type":"text","text":"accept"}]}
`, ""},
	{"questions to the model and about roots", []string{"sampling.message.shape", "roots.uri"}, func(v *visit) {
		opts := answering()
		opts.Sample = func(_ context.Context, p *CreateMessageParams) (*CreateMessageResult, error) {
			v.say("asked %s %s %d", p.Messages[0].Content[0].Text, p.SystemPrompt, p.MaxTokens)
			return &CreateMessageResult{Role: "assistant", Model: "m", Content: []Content{Text("ho")}}, nil
		}
		cs := v.connect("everything", opts)
		v.call(cs, "samples", nil)
		v.call(cs, "roots", nil)
		opts.Roots = func(context.Context) ([]Root, error) { return nil, nil }
		v.call(v.connect("everything", opts), "roots", nil)
	}, `
asked hi short 5
samples: {"content":[{"type":"text","text":"m: ho"}]}
roots: {"content":[{"type":"text","text":"1 [{file:///r  map[]}]"}]}
roots: {"content":[{"type":"text","text":"0 []"}]}
`, ""},
	{"several questions at once", []string{"mrtr.client.keys", "mrtr.client.fulfil"}, func(v *visit) {
		var asked sync.WaitGroup
		asked.Add(3) // who answers waits for the other two
		cs := v.connect("everything", ClientOptions{
			Elicit: func(_ context.Context, p *ElicitParams) (*ElicitResult, error) {
				asked.Done()
				asked.Wait()
				return &ElicitResult{Action: "accept", Content: json.RawMessage(`{"said":"` + p.Message + `"}`)}, nil
			},
			Roots: func(context.Context) ([]Root, error) {
				asked.Done()
				asked.Wait()
				return nil, nil
			},
		})
		v.call(cs, "several", nil)
	}, `
several: {"content":[{"type":"text","text":"{\"action\":\"accept\",\"content\":{\"said\":\"one\"}} {\"action\":\"accept\",\"content\":{\"said\":\"two\"}} {\"roots\":[]}"}]}
`, ""},
	{"rounds with state", []string{"mrtr.repeat", "mrtr.state.echo", "mrtr.client.new-id"}, func(v *visit) {
		v.call(v.connect("everything", answering()), "rounds", nil)
	}, `
rounds: {"content":[{"type":"text","text":"3 rounds, 2 answers"}]}
`, ""},
	{"questions that the client cannot answer", []string{"mrtr.caps", "meta.caps.undeclared", "elicit.caps.modern", "sampling.caps.modern", "roots.caps.modern"}, func(v *visit) {
		cs := v.connect("everything", ClientOptions{})
		for _, tool := range []string{"elicits", "opens", "samples", "roots"} {
			v.call(cs, tool, map[string]string{})
		}
		v.call(cs, "string", nil)
	}, `
elicits: {"content":[{"type":"text","text":"the client did not declare {\"elicitation\":{\"form\":{}}}, which elicitation/create needs"}],"isError":true}
opens: {"content":[{"type":"text","text":"the client did not declare {\"elicitation\":{\"url\":{}}}, which elicitation/create needs"}],"isError":true}
samples: {"content":[{"type":"text","text":"the client did not declare {\"sampling\":{}}, which sampling/createMessage needs"}],"isError":true}
roots: {"content":[{"type":"text","text":"the client did not declare {\"roots\":{}}, which roots/list needs"}],"isError":true}
string: {"content":[{"type":"text","text":"text"}]}
`, `
elicits: refused with -32021 {"requiredCapabilities":{"elicitation":{"form":{}}}}
opens: refused with -32021 {"requiredCapabilities":{"elicitation":{"url":{}}}}
samples: refused with -32021 {"requiredCapabilities":{"sampling":{}}}
roots: refused with -32021 {"requiredCapabilities":{"roots":{}}}
string: {"content":[{"type":"text","text":"text"}]}
`},
	{"questions whose answer fails", []string{"errors.local.distinct", "roots.error.internal"}, func(v *visit) {
		opts := answering()
		opts.Roots = func(context.Context) ([]Root, error) { return nil, errors.New("a secret") }
		cs := v.connect("everything", opts)
		v.call(cs, "roots", nil)
		v.call(cs, "string", nil)
	}, `
roots: {"content":[{"type":"text","text":"the client answered: mcp: internal error (code -32603)"}],"isError":true}
string: {"content":[{"type":"text","text":"text"}]}
`, `
roots: error: mcp: tools/call: input request "k": a secret
string: {"content":[{"type":"text","text":"text"}]}
`},
	{"resources", []string{"resources.read.multiple", "resources.uri.custom"}, func(v *visit) {
		cs := v.connect("everything", ClientOptions{})
		for _, uri := range []string{"test://several", "test://users/%C2%A7%20a%2Fb", "test://users/a?by=b%26c", "test://users/a/b", "test://users/"} {
			r, err := cs.ReadResource(v.ctx, uri)
			v.saw(uri, r, err)
		}
	}, `
test://several: {"contents":[{"uri":"test://several","mimeType":"text/plain","text":""},{"uri":"test://blob","mimeType":"a/b","blob":"/wA="},{"uri":"test://none","mimeType":"text/plain","blob":""}]}
test://users/%C2%A7%20a%2Fb: {"contents":[{"uri":"test://users/%C2%A7%20a%2Fb","text":"\"§ a/b\" \"\""}]}
test://users/a?by=b%26c: {"contents":[{"uri":"test://users/a?by=b%26c","text":"\"a\" \"b&c\""}]}
test://users/a/b: refused with -32602 {"uri":"test://users/a/b"}
test://users/: {"contents":[{"uri":"test://users/","text":"\"\" \"\""}]}
`, ""},
	{"prompts", []string{"prompts.list.respond"}, func(v *visit) {
		cs := v.connect("everything", ClientOptions{})
		for _, args := range []map[string]string{{"name": "Bo"}, {"name": "", "how": ""}} {
			p, err := cs.GetPrompt(v.ctx, "greet", args)
			v.saw("greet", p, err)
		}
	}, `
greet: {"description":"greets","messages":[{"role":"user","content":{"type":"text","text":"hi Bo"}},{"role":"assistant","content":{"type":"text","text":"\"\" false"}}]}
greet: {"description":"greets","messages":[{"role":"user","content":{"type":"text","text":"hi "}},{"role":"assistant","content":{"type":"text","text":"\"\" true"}}]}
`, ""},
	{"completion", []string{"completion.max", "completion.context", "completion.error.ref"}, func(v *visit) {
		cs := v.connect("everything", ClientOptions{})
		p := &CompleteParams{Ref: CompleteReference{Type: "ref/prompt", Name: "greet"}, Argument: CompleteArgument{Name: "name", Value: "é"},
			Context: &CompleteContext{Arguments: map[string]string{"before": "b-"}}}
		r, err := cs.Complete(v.ctx, p)
		v.say("%v: %d of %d, more %t, %q to %q", err, len(r.Completion.Values), *r.Completion.Total, r.Completion.HasMore, r.Completion.Values[0], r.Completion.Values[99])
		p.Ref = CompleteReference{Type: "ref/resource", URI: "test://users/{name}{?of,by}"}
		r, err = cs.Complete(v.ctx, p)
		v.say("%v: %d", err, len(r.Completion.Values))
		p.Ref.URI = "test://users/{name}"
		_, err = cs.Complete(v.ctx, p)
		v.saw("unknown", nil, err)
	}, `
<nil>: 100 of 250, more true, "b-é0" to "b-é99"
<nil>: 100
unknown: refused with -32602
`, ""},
	{"changes", []string{"subs.filter", "subs.updated.only-listed", "resources.updated", "tools.list-changed", "resources.list-changed", "prompts.list-changed"}, func(v *visit) {
		cs := v.connect("everything", ClientOptions{})
		lists, err := cs.Listen(v.ctx, SubscriptionFilter{ToolsListChanged: true, ResourcesListChanged: true})
		if err != nil {
			v.t.Fatal(err)
		}
		one, err := cs.Listen(v.ctx, SubscriptionFilter{ResourceSubscriptions: []string{"test://several", "test://users/1"}, PromptsListChanged: true})
		if err != nil {
			v.t.Fatal(err)
		}
		v.say("honoured %s and %s", v.bare(lists.Honored), v.bare(one.Honored))
		v.call(cs, "string", nil) // by now the server knows that the client is initialized
		for _, c := range []string{"tools new", "content test://users/2", "content test://several", "prompts none", "prompts greet", "resources test://new", "content test://users/1"} {
			what, name, _ := strings.Cut(c, " ")
			if _, err := cs.CallTool(v.ctx, "change", map[string]string{"what": what, "name": name}); err != nil {
				v.t.Fatal(err)
			}
		}
		v.events(one, Change{notifyResourceUpdated, "test://users/1"})
		v.events(lists, Change{Method: notifyResourcesChanged})
		v.saw("close", nil, one.Close())
		v.events(one, Change{})
		v.saw("close again", nil, one.Close())
		v.call(cs, "string", nil)
	}, `
honoured {"resourcesListChanged":true,"toolsListChanged":true} and {"promptsListChanged":true,"resourceSubscriptions":["test://several","test://users/1"]}
string: {"content":[{"type":"text","text":"text"}]}
events: notifications/prompts/list_changed, notifications/resources/updated test://several, notifications/resources/updated test://users/1
events: notifications/resources/list_changed, notifications/tools/list_changed
close: null
events: 
close again: null
string: {"content":[{"type":"text","text":"text"}]}
`, ""},
	{"what the server does not offer", []string{"caps.respect", "subs.ack.client-check"}, func(v *visit) {
		cs := v.connect("bare", ClientOptions{})
		_, err := cs.Listen(v.ctx, SubscriptionFilter{ToolsListChanged: true, ResourceSubscriptions: []string{"test://several"}})
		v.saw("listen", nil, err)
		v.call(cs, "string", nil)
		_, err = cs.ReadResource(v.ctx, "test://several")
		v.saw("read", nil, err)
		_, err = cs.GetPrompt(v.ctx, "greet", nil)
		v.saw("prompt", nil, err)
		for _, err = range cs.Prompts(v.ctx) {
			v.saw("prompts", nil, err)
		}
		v.saw("still there", nil, cs.Ping(v.ctx))
	}, `
listen: unsupported
string: unsupported
read: unsupported
prompt: unsupported
prompts: unsupported
still there: null
`, ""},
	{"the server ends what is listened to", []string{"subs.close.graceful", "subs.close.abrupt", "subs.close.result"}, func(v *visit) {
		cs := v.connect("everything", ClientOptions{})
		sub, err := cs.Listen(v.ctx, SubscriptionFilter{ToolsListChanged: true})
		if err != nil {
			v.t.Fatal(err)
		}
		_, err = cs.CallTool(v.ctx, "leaves", nil)
		v.saw("leaves", nil, err)
		v.events(sub, Change{})
	}, `
leaves: closed
events: closed
`, `
leaves: closed
events: 
`},
	{"many calls at once", []string{"stateless.interleaving", "base.id.unique-session"}, func(v *visit) {
		cs := v.connect("everything", ClientOptions{})
		texts := make(chan string, 40)
		for range 40 {
			go func() {
				text, err := CallTool[string](v.ctx, cs, "meets", nil)
				texts <- fmt.Sprint(text, " ", err)
			}()
		}
		count := map[string]int{}
		for range 40 {
			count[<-texts]++
		}
		v.say("%v", count)
	}, `
map[met <nil>:40]
`, ""},
	{"big messages", []string{"stdio.framing"}, func(v *visit) {
		cs := v.connect("everything", ClientOptions{})
		big := strings.Repeat("é\"\n\u2028", bigMessage/7+1)
		for _, args := range []map[string]string{{"a": big}, {big: "a"}} {
			want := string(mustEncode(args, rev20260728))
			text, err := CallTool[string](v.ctx, cs, "echo", args)
			v.say("%t %t %v", len(want) > bigMessage, text == want, err)
		}
		n := 0
		text, err := CallTool[string](v.ctx, cs.With(CallOptions{Progress: func(p ProgressParams) { n += len(p.Message) }}), "steps", map[string]int{"pad": bigMessage})
		v.say("%s %d %v", text, n, err)
	}, fmt.Sprintf(`
true true <nil>
true true <nil>
done %d <nil>
`, 3*bigMessage+len("at 0at 0.25at 2.5")), ""},
	{"the client leaves with a call running", nil, func(v *visit) {
		cs := v.connect("everything", ClientOptions{})
		_, err := cs.With(CallOptions{Progress: func(ProgressParams) { v.saw("close", nil, cs.Close()) }}).CallTool(v.ctx, "naps", nil)
		v.saw("naps", nil, err)
		v.call(cs, "string", nil)
		v.saw("ping", nil, cs.Ping(v.ctx))
		v.saw("note", nil, cs.Notify(v.ctx, "x/note", nil))
		_, err = cs.Listen(v.ctx, SubscriptionFilter{ToolsListChanged: true})
		v.saw("close again", nil, cs.Close())
		v.saw("wait", nil, cs.Wait())
	}, `
close: null
naps: closed
string: closed
ping: closed
note: closed
close again: null
wait: null
`, ""},
	{"the server leaves with a call running", []string{"stdio.shutdown.server-initiated"}, func(v *visit) {
		cs := v.connect("everything", ClientOptions{})
		began, waited := make(chan bool), make(chan error)
		go func() {
			_, err := cs.With(CallOptions{Progress: func(ProgressParams) { close(began) }}).CallTool(v.ctx, "waits", nil)
			waited <- err
		}()
		<-began
		v.call(cs, "leaves", nil)
		v.saw("waits", nil, <-waited)
		v.saw("wait", nil, cs.Wait())
		v.call(cs, "string", nil)
		v.saw("note", nil, cs.Notify(v.ctx, "x/note", nil))
		v.saw("close", nil, cs.Close())
	}, `
leaves: closed
waits: closed
wait: null
string: closed
note: closed
close: null
`, ""},
}

// shelfLists is what can be listed of the shelf.
func shelfLists() string {
	text := new(strings.Builder)
	for i := range 7 {
		fmt.Fprintf(text, "tool: {\"_meta\":{\"example.com/n\":%[1]d},\"annotations\":{\"readOnlyHint\":false},\"description\":\"<does> & says \\u2028\",\"inputSchema\":{\"type\":\"object\",\"x-digits\":1.10},\"name\":\"tool-%[1]d\",\"title\":\"Tool %[1]d\"}\n", i)
	}
	for i := range 7 {
		fmt.Fprintf(text, "prompt: {\"arguments\":[{\"name\":\"a\",\"required\":true}],\"name\":\"prompt-%d\"}\n", i)
	}
	for i := range 6 {
		fmt.Fprintf(text, "resource: {\"mimeType\":\"text/plain\",\"name\":\"r\",\"uri\":\"test://%d\"}\n", i)
	}
	return text.String() + "template: {\"name\":\"t\",\"uriTemplate\":\"test://{+all}\"}\n"
}
