package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"mcpkit/mcp"
)

// newServer returns an empty server for an example.
func newServer() *mcp.Server {
	return mcp.NewServer(mcp.Implementation{Name: "example", Version: "1.0.0"}, nil)
}

// connect serves s in memory and returns a client's session with it.
func connect(ctx context.Context, s *mcp.Server, opts *mcp.ClientOptions) *mcp.ClientSession {
	client, server := mcp.InMemory()
	if _, err := s.Connect(ctx, server); err != nil {
		log.Fatal(err)
	}
	cs, err := mcp.NewClient(mcp.Implementation{Name: "host", Version: "1.0.0"}, opts).Connect(ctx, client)
	if err != nil {
		log.Fatal(err)
	}
	return cs
}

// A server with one typed tool, and a client that calls it, in one process.
func Example() {
	type In struct {
		A int `json:"a" jsonschema:"the first summand"`
		B int `json:"b" jsonschema:"the second,minimum=0"`
	}
	type Out struct {
		Sum int `json:"sum"`
	}
	s := mcp.NewServer(mcp.Implementation{Name: "sums", Version: "1.0.0"}, nil)
	mcp.AddTool(s, mcp.Tool{Name: "add", Description: "Adds two numbers"},
		func(ctx context.Context, req *mcp.Request, in In) (Out, error) {
			return Out{Sum: in.A + in.B}, nil
		})

	ctx := context.Background()
	client, server := mcp.InMemory()
	if _, err := s.Connect(ctx, server); err != nil {
		log.Fatal(err)
	}
	cs, err := mcp.NewClient(mcp.Implementation{Name: "host", Version: "1.0.0"}, nil).Connect(ctx, client)
	if err != nil {
		log.Fatal(err)
	}
	defer cs.Close()

	for tool, err := range cs.Tools(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(tool.Name, "-", tool.Description)
	}
	out, err := mcp.CallTool[Out](ctx, cs, "add", In{A: 40, B: 2})
	fmt.Println(out.Sum, err)
	_, err = mcp.CallTool[Out](ctx, cs, "add", map[string]any{"a": "x", "b": -1})
	fmt.Println(err)
	// Output:
	// add - Adds two numbers
	// 42 <nil>
	// mcp: invalid arguments: /a: must be an integer, got a string; /b: must be at least 0
}

// A client that runs the server as a child process and stops it at the end.
func ExampleCommand() {
	ctx := context.Background()
	c := mcp.NewClient(mcp.Implementation{Name: "host", Version: "1.0.0"}, nil)
	cs, err := c.Connect(ctx, &mcp.Command{
		Cmd:    exec.Command("npx", "-y", "@modelcontextprotocol/server-everything"),
		Stderr: func(line string) { log.Println("server:", line) },
	})
	if err != nil {
		log.Fatal(err)
	}
	defer cs.Close()
	fmt.Println(cs.Server().Name, "speaks", cs.Server().ProtocolVersion)
	fmt.Println(mcp.CallTool[string](ctx, cs, "echo", map[string]any{"message": "hello"}))
}

// A tool that asks the user. It is written once: a client of 2025-11-25 is
// asked while the tool waits; to one of 2026-07-28 the question goes as the
// result, and the tool runs again from the top when the answer is there.
func ExampleRequest_Elicit() {
	type In struct {
		File string `json:"file"`
	}
	runs := 0
	s := newServer()
	mcp.AddTool(s, mcp.Tool{Name: "delete"},
		func(ctx context.Context, req *mcp.Request, in In) (string, error) {
			runs++
			answer, err := req.Elicit(ctx, "confirm", &mcp.ElicitParams{
				Message:         "Delete " + in.File + "?",
				RequestedSchema: json.RawMessage(`{"type": "object", "properties": {"keepCopy": {"type": "boolean"}}}`),
			})
			if err != nil {
				return "", err // as it is: it may be the question
			}
			if answer.Action != "accept" {
				return "kept", nil
			}
			return "deleted, " + string(answer.Content), nil
		})

	ctx := context.Background()
	for _, version := range []string{mcp.Version20251125, mcp.Version20260728} {
		cs := connect(ctx, s, &mcp.ClientOptions{
			Versions: []string{version},
			Elicit: func(ctx context.Context, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
				fmt.Println(p.Message)
				return &mcp.ElicitResult{Action: "accept", Content: json.RawMessage(`{"keepCopy":true}`)}, nil
			},
		})
		runs = 0
		text, err := mcp.CallTool[string](ctx, cs, "delete", In{File: "a.txt"})
		fmt.Println(version, "runs:", runs, text, err)
		cs.Close()
	}
	// Output:
	// Delete a.txt?
	// 2025-11-25 runs: 1 deleted, {"keepCopy":true} <nil>
	// Delete a.txt?
	// 2026-07-28 runs: 2 deleted, {"keepCopy":true} <nil>
}

// A tool that asks two things at once. The answers come together, whether the
// client was asked while the tool waits or between two runs of it.
func ExampleRequest_Ask() {
	question := func(message string) mcp.InputRequest {
		params, err := json.Marshal(mcp.ElicitParams{
			Message:         message,
			RequestedSchema: json.RawMessage(`{"type": "object", "properties": {"city": {"type": "string"}}}`),
		})
		if err != nil {
			log.Fatal(err)
		}
		return mcp.InputRequest{Method: "elicitation/create", Params: params}
	}
	s := newServer()
	mcp.AddTool(s, mcp.Tool{Name: "travel"},
		func(ctx context.Context, req *mcp.Request, in struct{}) (string, error) {
			answers, err := req.Ask(ctx, mcp.InputRequests{"from": question("From where?"), "to": question("To where?")})
			if err != nil {
				return "", err // as it is: it may be the questions
			}
			return fmt.Sprintf("%s %s", answers["from"], answers["to"]), nil
		})

	ctx := context.Background()
	cs := connect(ctx, s, &mcp.ClientOptions{
		Elicit: func(ctx context.Context, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
			content := `{"city":"Oslo"}`
			if p.Message == "From where?" {
				content = `{"city":"Bern"}`
			}
			return &mcp.ElicitResult{Action: "accept", Content: json.RawMessage(content)}, nil
		},
	})
	defer cs.Close()
	fmt.Println(mcp.CallTool[string](ctx, cs, "travel", nil))
	// Output:
	// {"action":"accept","content":{"city":"Bern"}} {"action":"accept","content":{"city":"Oslo"}} <nil>
}

// A tool that keeps what it found out before it asked, so that its second run
// need not do it again. The client carries the state, and can neither read nor
// change it.
func ExampleRequest_SetState() {
	lookups := 0
	s := newServer()
	mcp.AddTool(s, mcp.Tool{Name: "buy"},
		func(ctx context.Context, req *mcp.Request, in struct{}) (string, error) {
			var price int
			if state := req.State(); state == nil {
				lookups++
				price = 7
				if err := req.SetState(price); err != nil {
					return "", err
				}
			} else if err := json.Unmarshal(state, &price); err != nil {
				return "", err
			}
			answer, err := req.Elicit(ctx, "price", &mcp.ElicitParams{Message: fmt.Sprintf("It costs %d. Buy it?", price)})
			if err != nil {
				return "", err
			}
			return fmt.Sprintf("%s at %d", answer.Action, price), nil
		})

	ctx := context.Background()
	cs := connect(ctx, s, &mcp.ClientOptions{
		Elicit: func(ctx context.Context, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
			fmt.Println(p.Message)
			return &mcp.ElicitResult{Action: "accept", Content: json.RawMessage(`{}`)}, nil
		},
	})
	defer cs.Close()
	text, err := mcp.CallTool[string](ctx, cs, "buy", nil)
	fmt.Println(text, err, "lookups:", lookups)
	// Output:
	// It costs 7. Buy it?
	// accept at 7 <nil> lookups: 1
}

// A question that the user answers on a page, which neither the client nor its
// model sees. The client shows the whole address, and opens it only if the
// user agrees.
func ExampleElicitParams_url() {
	s := newServer()
	mcp.AddTool(s, mcp.Tool{Name: "pay"},
		func(ctx context.Context, req *mcp.Request, in struct{}) (string, error) {
			answer, err := req.Elicit(ctx, "pay", &mcp.ElicitParams{
				Mode: "url", Message: "Please pay", URL: "https://pay.example/order/7",
			})
			if err != nil {
				return "", err
			}
			return "the user's answer: " + answer.Action, nil // that it is paid, the page has to say
		})

	ctx := context.Background()
	cs := connect(ctx, s, &mcp.ClientOptions{
		Capabilities: &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapability{Form: &struct{}{}, URL: &struct{}{}}},
		Elicit: func(ctx context.Context, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
			if p.Mode != "url" {
				return &mcp.ElicitResult{Action: "decline"}, nil
			}
			fmt.Printf("%s? It opens %s\n", p.Message, p.URL)
			return &mcp.ElicitResult{Action: "accept"}, nil
		},
	})
	defer cs.Close()
	fmt.Println(mcp.CallTool[string](ctx, cs, "pay", nil))
	// Output:
	// Please pay? It opens https://pay.example/order/7
	// the user's answer: accept <nil>
}

// A family of resources. What the variables stand for is in req.Vars.
func ExampleServer_AddResourceTemplate() {
	cities := map[string]string{"Bern": "134591", "Basel": "173863"}
	s := newServer()
	s.AddResourceTemplate(
		mcp.ResourceTemplate{URITemplate: "city://{name}/people", Name: "people", MIMEType: "text/plain"},
		func(ctx context.Context, req *mcp.Request) (*mcp.ReadResourceResult, error) {
			people, ok := cities[req.Vars["name"]]
			if !ok {
				return nil, mcp.ResourceNotFound(req.Name)
			}
			return &mcp.ReadResourceResult{Contents: []mcp.ResourceContents{{Text: people}}}, nil
		})

	ctx := context.Background()
	cs := connect(ctx, s, nil)
	defer cs.Close()
	r, err := cs.ReadResource(ctx, "city://Bern/people")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(r.Contents[0].URI, r.Contents[0].MIMEType, r.Contents[0].Text)
	_, err = cs.ReadResource(ctx, "city://Rome/people")
	fmt.Println(err)
	// Output:
	// city://Bern/people text/plain 134591
	// mcp: resource not found: city://Rome/people (code -32602)
}

// A prompt with an argument. What the client gave is in req.Vars.
func ExampleServer_AddPrompt() {
	s := newServer()
	s.AddPrompt(
		mcp.Prompt{Name: "review", Arguments: []mcp.PromptArgument{{Name: "language", Required: true}}},
		func(ctx context.Context, req *mcp.Request) (*mcp.GetPromptResult, error) {
			text := "Review this " + req.Vars["language"] + " code."
			return &mcp.GetPromptResult{Messages: []mcp.PromptMessage{{Role: "user", Content: mcp.Text(text)}}}, nil
		})

	ctx := context.Background()
	cs := connect(ctx, s, nil)
	defer cs.Close()
	p, err := cs.GetPrompt(ctx, "review", map[string]string{"language": "Go"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(p.Messages[0].Role, "-", p.Messages[0].Content.Text)
	_, err = cs.GetPrompt(ctx, "review", nil)
	fmt.Println(err)
	// Output:
	// user - Review this Go code.
	// mcp: prompt review needs the argument language (code -32602)
}

// A tool that says how far it is. Nothing is sent to a client that did not ask.
func ExampleRequest_Progress() {
	s := newServer()
	mcp.AddTool(s, mcp.Tool{Name: "copy"},
		func(ctx context.Context, req *mcp.Request, in struct{}) (string, error) {
			total := 3.0
			for i := range 3 {
				req.Progress(ctx, mcp.ProgressParams{Progress: float64(i + 1), Total: &total})
			}
			return "copied", nil
		})

	ctx := context.Background()
	cs := connect(ctx, s, nil)
	defer cs.Close()
	watching := cs.With(mcp.CallOptions{Progress: func(p mcp.ProgressParams) {
		fmt.Println(p.Progress, "of", *p.Total)
	}})
	fmt.Println(mcp.CallTool[string](ctx, watching, "copy", nil))
	// Output:
	// 1 of 3
	// 2 of 3
	// 3 of 3
	// copied <nil>
}

// Two ways to give up on a call: a time limit, and the context. Either way
// the server is told, and the handler's context ends.
func ExampleClientSession_With() {
	events := make(chan string, 2)
	s := newServer()
	mcp.AddTool(s, mcp.Tool{Name: "wait"},
		func(ctx context.Context, req *mcp.Request, in struct{}) (string, error) {
			events <- "started"
			<-ctx.Done()
			events <- "stopped"
			return "", ctx.Err()
		})

	ctx := context.Background()
	cs := connect(ctx, s, nil)
	defer cs.Close()
	_, err := cs.With(mcp.CallOptions{Timeout: 10 * time.Millisecond}).CallTool(ctx, "wait", nil)
	fmt.Println(errors.Is(err, context.DeadlineExceeded), <-events, <-events)

	ctx, cancel := context.WithCancel(ctx)
	go func() {
		<-events
		cancel()
	}()
	_, err = cs.CallTool(ctx, "wait", nil)
	fmt.Println(errors.Is(err, context.Canceled), <-events)
	// Output:
	// true started stopped
	// true stopped
}

// A client hears that a resource has changed: through subscriptions/listen at
// 2026-07-28, through resources/subscribe before.
func ExampleClientSession_Listen() {
	s := newServer()
	s.AddResource(mcp.Resource{URI: "clock://now", Name: "now"},
		func(ctx context.Context, req *mcp.Request) (*mcp.ReadResourceResult, error) {
			return &mcp.ReadResourceResult{Contents: []mcp.ResourceContents{{Text: "noon"}}}, nil
		})

	ctx := context.Background()
	for _, version := range []string{mcp.Version20251125, mcp.Version20260728} {
		cs := connect(ctx, s, &mcp.ClientOptions{Versions: []string{version}})
		sub, err := cs.Listen(ctx, mcp.SubscriptionFilter{ResourceSubscriptions: []string{"clock://now"}})
		if err != nil {
			log.Fatal(err)
		}
		s.ResourceUpdated("clock://now")
		for change, err := range sub.Events(ctx) {
			fmt.Println(change.Method, change.URI, err)
			sub.Close() // Events stops then
		}
		cs.Close()
	}
	// Output:
	// notifications/resources/updated clock://now <nil>
	// notifications/resources/updated clock://now <nil>
}

// Middleware sees every message that arrives and may refuse it.
func ExampleServer_Use() {
	s := newServer()
	s.AddPrompt(mcp.Prompt{Name: "hello"}, func(ctx context.Context, req *mcp.Request) (*mcp.GetPromptResult, error) {
		return &mcp.GetPromptResult{}, nil
	})
	s.Use(func(next mcp.Handler) mcp.Handler {
		return func(ctx context.Context, req *mcp.Request) (any, error) {
			result, err := next(ctx, req)
			fmt.Println(req.Version(), req.Method, req.Name, err)
			return result, err
		}
	}, func(next mcp.Handler) mcp.Handler {
		return func(ctx context.Context, req *mcp.Request) (any, error) {
			if req.Method == "prompts/list" {
				return nil, mcp.Errorf(mcp.CodeInvalidRequest, "not today")
			}
			return next(ctx, req)
		}
	})

	ctx := context.Background()
	cs := connect(ctx, s, nil)
	defer cs.Close()
	if _, err := cs.GetPrompt(ctx, "hello", nil); err != nil {
		log.Fatal(err)
	}
	for _, err := range cs.Prompts(ctx) {
		fmt.Println("client:", err)
	}
	// Output:
	// 2026-07-28 server/discover  <nil>
	// 2026-07-28 prompts/get hello <nil>
	// 2026-07-28 prompts/list  mcp: not today (code -32600)
	// client: mcp: not today (code -32600)
}

// A tool whose schema is written by hand, and whose arguments come as they
// were sent, with the schema's defaults filled in.
func ExampleServer_AddTool() {
	s := newServer()
	s.AddTool(mcp.Tool{
		Name: "search",
		InputSchema: json.RawMessage(`{
			"type": "object",
			"properties": {"text": {"type": "string"}, "limit": {"type": "integer", "maximum": 100, "default": 10}},
			"required": ["text"]
		}`),
	}, func(ctx context.Context, req *mcp.Request) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{mcp.Text(string(req.Arguments))}}, nil
	})

	ctx := context.Background()
	cs := connect(ctx, s, nil)
	defer cs.Close()
	for _, args := range []string{`{"text":"go"}`, `{"limit":1000}`} {
		result, err := cs.CallTool(ctx, "search", json.RawMessage(args))
		if err != nil {
			log.Fatal(err) // a protocol error; what the tool reports is in the result
		}
		fmt.Println(result.IsError, result.Content[0].Text)
	}
	// Output:
	// false {"text":"go","limit":10}
	// true invalid arguments: /limit: must be at most 100; /text: is required
}

// How a caller tells errors apart.
func ExampleError() {
	s := newServer()
	mcp.AddTool(s, mcp.Tool{Name: "open"},
		func(ctx context.Context, req *mcp.Request, in struct{}) (string, error) {
			return "", errors.New("the door is stuck")
		})

	ctx := context.Background()
	cs := connect(ctx, s, nil)
	defer cs.Close()

	_, err := mcp.CallTool[string](ctx, cs, "open", nil)
	var failed *mcp.ToolError // the tool ran and failed
	fmt.Println(errors.As(err, &failed), err)

	_, err = mcp.CallTool[string](ctx, cs, "close", nil)
	var refused *mcp.Error // the server refused the request
	fmt.Println(errors.As(err, &refused) && refused.Code == mcp.CodeInvalidParams, err)
	// Output:
	// true mcp: the door is stuck
	// true mcp: unknown tool: close (code -32602)
}

// Tools that only some may see: to the others they do not exist.
func ExampleServerOptions_filter() {
	s := mcp.NewServer(mcp.Implementation{Name: "example", Version: "1.0.0"}, &mcp.ServerOptions{
		Filter: func(ctx context.Context, req *mcp.Request, name string) bool {
			return name != "ask-the-model" || req.Capabilities().Sampling != nil
		},
	})
	for _, name := range []string{"add", "ask-the-model"} {
		mcp.AddTool(s, mcp.Tool{Name: name}, func(ctx context.Context, req *mcp.Request, in struct{}) (string, error) {
			return "done", nil
		})
	}

	ctx := context.Background()
	cs := connect(ctx, s, nil) // a client without a model
	defer cs.Close()
	for tool, err := range cs.Tools(ctx) {
		fmt.Println(tool.Name, err)
	}
	_, err := cs.CallTool(ctx, "ask-the-model", nil)
	fmt.Println(err)
	// Output:
	// add <nil>
	// mcp: unknown tool: ask-the-model (code -32602)
}

// A folder of files as resources. What leads out of it is not found.
func ExampleFileHandler() {
	folder, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)
	if err := os.WriteFile(filepath.Join(folder, "a.txt"), []byte("hello"), 0o666); err != nil {
		log.Fatal(err)
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		log.Fatal(err)
	}
	defer root.Close()
	s := newServer()
	s.AddResourceTemplate(mcp.ResourceTemplate{URITemplate: "file:///docs/{+path}", Name: "docs"},
		mcp.FileHandler(root, "file:///docs/"))

	ctx := context.Background()
	cs := connect(ctx, s, nil)
	defer cs.Close()
	r, err := cs.ReadResource(ctx, "file:///docs/a.txt")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(r.Contents[0].Text)
	_, err = cs.ReadResource(ctx, "file:///docs/%2e%2e/secret.txt")
	fmt.Println(err)
	// Output:
	// hello
	// mcp: resource not found: file:///docs/%2e%2e/secret.txt (code -32602)
}

// A method that the protocol does not have, on both sides.
func ExampleHandle() {
	type Params struct {
		Text string `json:"text"`
	}
	type Result struct {
		Length int `json:"length"`
	}
	s := newServer()
	mcp.Handle(s, "example/measure", func(ctx context.Context, req *mcp.Request, p Params) (Result, error) {
		return Result{len(p.Text)}, nil
	})

	ctx := context.Background()
	cs := connect(ctx, s, nil)
	defer cs.Close()
	var r Result
	err := cs.Call(ctx, "example/measure", Params{"hello"}, &r)
	fmt.Println(r.Length, err)
	// Output:
	// 5 <nil>
}

// Middleware of a client sees what it sends, and what the server sends.
func ExampleClient_Use() {
	s := newServer()
	mcp.AddTool(s, mcp.Tool{Name: "ask"}, func(ctx context.Context, req *mcp.Request, in struct{}) (string, error) {
		answer, err := req.Elicit(ctx, "sure", &mcp.ElicitParams{Message: "Sure?"})
		if err != nil {
			return "", err
		}
		return answer.Action, nil
	})
	c := mcp.NewClient(mcp.Implementation{Name: "host", Version: "1.0.0"}, &mcp.ClientOptions{
		Elicit: func(ctx context.Context, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "decline"}, nil
		},
	})
	c.Use(func(next mcp.Handler) mcp.Handler {
		return func(ctx context.Context, req *mcp.Request) (any, error) {
			direction := "from the server"
			if req.Outgoing {
				direction = "to the server"
			}
			fmt.Println(req.Method, direction)
			return next(ctx, req)
		}
	})

	ctx := context.Background()
	client, server := mcp.InMemory()
	if _, err := s.Connect(ctx, server); err != nil {
		log.Fatal(err)
	}
	cs, err := c.Connect(ctx, client)
	if err != nil {
		log.Fatal(err)
	}
	defer cs.Close()
	fmt.Println(mcp.CallTool[string](ctx, cs, "ask", nil))
	// Output:
	// server/discover to the server
	// tools/call to the server
	// elicitation/create from the server
	// tools/call to the server
	// decline <nil>
}

// A call that needs what the server does not have is not sent, unless the
// caller insists.
func ExampleCallOptions_insist() {
	s := newServer() // without prompts
	ctx := context.Background()
	cs := connect(ctx, s, nil)
	defer cs.Close()
	_, err := cs.GetPrompt(ctx, "hello", nil)
	fmt.Println(errors.Is(err, errors.ErrUnsupported))
	_, err = cs.With(mcp.CallOptions{Insist: true}).GetPrompt(ctx, "hello", nil)
	fmt.Println(err)
	// Output:
	// true
	// mcp: method not found: prompts/get (code -32601)
}

// What has to be cleaned up when a session ends, however it ends. The last
// that was registered runs first.
func ExampleClientSession_OnClose() {
	s := newServer()
	ctx := context.Background()
	cs := connect(ctx, s, nil)
	cs.OnClose(func() { fmt.Println("close the log") })
	cs.OnClose(func() { fmt.Println("write the last entry") })
	cs.Close() // waits for them
	fmt.Println("closed")
	// Output:
	// write the last entry
	// close the log
	// closed
}

// What a server opens before the first message and closes after the last
// handler. Handlers find it in their context.
func ExampleServerOptions_lifespan() {
	type key struct{}
	s := mcp.NewServer(mcp.Implementation{Name: "example", Version: "1.0.0"}, &mcp.ServerOptions{
		Lifespan: func(ctx context.Context) (context.Context, func(), error) {
			fmt.Println("open the database")
			return context.WithValue(ctx, key{}, "database"), func() { fmt.Println("close the database") }, nil
		},
	})
	mcp.AddTool(s, mcp.Tool{Name: "query"}, func(ctx context.Context, req *mcp.Request, in struct{}) (string, error) {
		return fmt.Sprint("from the ", ctx.Value(key{})), nil
	})

	ctx := context.Background()
	client, server := mcp.InMemory()
	ended := make(chan error)
	go func() { ended <- s.Run(ctx, server) }()
	cs, err := mcp.NewClient(mcp.Implementation{Name: "host", Version: "1.0.0"}, nil).Connect(ctx, client)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(mcp.CallTool[string](ctx, cs, "query", nil))
	cs.Close()
	fmt.Println(<-ended)
	// Output:
	// open the database
	// from the database <nil>
	// close the database
	// <nil>
}

// Results that the server allows to be used again are, until their time is
// over or the client hears that they have changed.
func ExampleClientOptions_cache() {
	s := mcp.NewServer(mcp.Implementation{Name: "example", Version: "1.0.0"}, &mcp.ServerOptions{
		Cache: mcp.CacheHints{TTLMs: 60_000},
	})
	s.AddPrompt(mcp.Prompt{Name: "hello"}, func(ctx context.Context, req *mcp.Request) (*mcp.GetPromptResult, error) {
		return &mcp.GetPromptResult{}, nil
	})
	asked := 0
	s.Use(func(next mcp.Handler) mcp.Handler {
		return func(ctx context.Context, req *mcp.Request) (any, error) {
			if req.Method == "prompts/list" {
				asked++
			}
			return next(ctx, req)
		}
	})

	ctx := context.Background()
	for _, size := range []int64{0, -1} { // as usual, and without a cache
		cs := connect(ctx, s, &mcp.ClientOptions{CacheSize: size})
		asked = 0
		for range 3 {
			for _, err := range cs.Prompts(ctx) {
				if err != nil {
					log.Fatal(err)
				}
			}
		}
		fmt.Println("asked", asked)
		cs.Close()
	}
	// Output:
	// asked 1
	// asked 3
}

// What was found out about a server can be stored, and need not be asked
// again.
func ExampleClient_ConnectKnown() {
	s := newServer()
	s.Use(func(next mcp.Handler) mcp.Handler {
		return func(ctx context.Context, req *mcp.Request) (any, error) {
			fmt.Println(req.Method)
			return next(ctx, req)
		}
	})
	mcp.AddTool(s, mcp.Tool{Name: "hello"}, func(ctx context.Context, req *mcp.Request, in struct{}) (string, error) {
		return "hello", nil
	})

	ctx := context.Background()
	cs := connect(ctx, s, nil)
	stored, err := json.Marshal(cs.Server())
	if err != nil {
		log.Fatal(err)
	}
	cs.Close()

	var known mcp.ServerInfo
	if err := json.Unmarshal(stored, &known); err != nil {
		log.Fatal(err)
	}
	client, server := mcp.InMemory()
	if _, err := s.Connect(ctx, server); err != nil {
		log.Fatal(err)
	}
	cs, err = mcp.NewClient(mcp.Implementation{Name: "host", Version: "1.0.0"}, nil).ConnectKnown(ctx, client, &known)
	if err != nil {
		log.Fatal(err)
	}
	defer cs.Close()
	fmt.Println(mcp.CallTool[string](ctx, cs, "hello", nil))
	// Output:
	// server/discover
	// tools/call
	// hello <nil>
}

// A session that outlives its server: the call that is lost fails, and the
// next one opens the transport again, here a new connection in the process.
func ExampleClientOptions_restart() {
	starts := 0
	t := transportFunc(func(ctx context.Context) (mcp.Conn, error) {
		starts++
		s := newServer()
		mcp.AddTool(s, mcp.Tool{Name: "die"}, func(ctx context.Context, req *mcp.Request, in struct{}) (string, error) {
			return "", req.Session().Close()
		})
		mcp.AddTool(s, mcp.Tool{Name: "hello"}, func(ctx context.Context, req *mcp.Request, in struct{}) (string, error) {
			return "hello", nil
		})
		client, server := mcp.InMemory()
		if _, err := s.Connect(context.WithoutCancel(ctx), server); err != nil {
			return nil, err
		}
		return client.Connect(ctx)
	})

	ctx := context.Background()
	c := mcp.NewClient(mcp.Implementation{Name: "host", Version: "1.0.0"}, &mcp.ClientOptions{Restart: true})
	cs, err := c.Connect(ctx, t)
	if err != nil {
		log.Fatal(err)
	}
	defer cs.Close()
	_, err = mcp.CallTool[string](ctx, cs, "die", nil)
	fmt.Println("lost:", errors.Is(err, mcp.ErrClosed))
	fmt.Println(mcp.CallTool[string](ctx, cs, "hello", nil))
	fmt.Println("started", starts, "times")
	// Output:
	// lost: true
	// hello <nil>
	// started 2 times
}

type transportFunc func(ctx context.Context) (mcp.Conn, error)

func (f transportFunc) Connect(ctx context.Context) (mcp.Conn, error) { return f(ctx) }

// One server at one URL, for clients of both eras at the same time.
func ExampleNewHTTPHandler() {
	s := newServer()
	mcp.AddTool(s, mcp.Tool{Name: "which"}, func(ctx context.Context, req *mcp.Request, in struct{}) (string, error) {
		return "served at " + req.Version(), nil
	})
	h := mcp.NewHTTPHandler(s, nil)
	mux := http.NewServeMux()
	mux.Handle("/mcp", h)
	server := httptest.NewServer(mux) // or http.ListenAndServe
	defer server.Close()
	defer h.Shutdown(context.Background()) // first: it ends the streams

	ctx := context.Background()
	for _, versions := range [][]string{nil, {mcp.Version20251125}, {mcp.Version20250326}} {
		c := mcp.NewClient(mcp.Implementation{Name: "host", Version: "1.0.0"}, &mcp.ClientOptions{Versions: versions})
		cs, err := c.Connect(ctx, &mcp.HTTP{URL: server.URL + "/mcp"})
		if err != nil {
			log.Fatal(err)
		}
		defer cs.Close()
		fmt.Println(mcp.CallTool[string](ctx, cs, "which", nil))
	}
	// Output:
	// served at 2026-07-28 <nil>
	// served at 2025-11-25 <nil>
	// served at 2025-03-26 <nil>
}

// A client with a key, and a server that wants one: who may call is decided in
// front of the handler, which is told whose request it is.
func ExampleHTTP() {
	s := newServer()
	mcp.AddTool(s, mcp.Tool{Name: "whoami"}, func(ctx context.Context, req *mcp.Request, in struct{}) (string, error) {
		return req.Principal, nil
	})
	users := map[string]string{"k-123": "Ada"} // by key
	h := mcp.NewHTTPHandler(s, &mcp.HTTPOptions{
		Principal: func(r *http.Request) string { return users[r.Header.Get("X-Key")] },
	})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if users[r.Header.Get("X-Key")] == "" {
			http.Error(w, "who are you?", http.StatusForbidden)
			return
		}
		h.ServeHTTP(w, r)
	}))
	defer server.Close()
	defer h.Shutdown(context.Background())

	ctx := context.Background()
	c := mcp.NewClient(mcp.Implementation{Name: "host", Version: "1.0.0"}, nil)
	cs, err := c.Connect(ctx, &mcp.HTTP{
		URL:    server.URL,
		Header: http.Header{"X-Key": {"k-123"}},
		Client: &http.Client{Transport: http.DefaultTransport}, // for proxies, certificates and the like
	})
	if err != nil {
		log.Fatal(err)
	}
	defer cs.Close()
	fmt.Println(mcp.CallTool[string](ctx, cs, "whoami", nil))

	_, err = c.Connect(ctx, &mcp.HTTP{URL: server.URL})
	var refused *mcp.HTTPError
	if errors.As(err, &refused) {
		fmt.Println(refused.Status, strings.TrimSpace(refused.Body))
	}
	// Output:
	// Ada <nil>
	// 403 who are you?
}

// Pages of one other origin may use the handler. A browser asks first, and
// lets a page read only what it is told it may.
func ExampleHTTPOptions_origins() {
	h := mcp.NewHTTPHandler(newServer(), &mcp.HTTPOptions{Origins: []string{"https://app.example.com"}})
	server := httptest.NewServer(h)
	defer server.Close()
	for _, origin := range []string{"https://app.example.com", "https://evil.example.com"} {
		r, err := http.NewRequest(http.MethodOptions, server.URL, nil)
		if err != nil {
			log.Fatal(err)
		}
		r.Header.Set("Origin", origin)
		r.Header.Set("Access-Control-Request-Method", "POST")
		r.Header.Set("Access-Control-Request-Headers", "content-type,mcp-protocol-version,x-other")
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			log.Fatal(err)
		}
		response.Body.Close()
		fmt.Println(response.StatusCode)
		for _, name := range []string{"Access-Control-Allow-Origin", "Access-Control-Allow-Methods", "Access-Control-Allow-Headers"} {
			if value := response.Header.Get(name); value != "" {
				fmt.Printf("%s: %s\n", name, value)
			}
		}
	}
	// Output:
	// 204
	// Access-Control-Allow-Origin: https://app.example.com
	// Access-Control-Allow-Methods: GET, POST, DELETE
	// Access-Control-Allow-Headers: content-type, mcp-protocol-version
	// 403
}

// Two servers behind one handler, chosen by the path.
func ExampleHTTPOptions_server() {
	servers := map[string]*mcp.Server{}
	for _, name := range []string{"books", "films"} {
		s := mcp.NewServer(mcp.Implementation{Name: name, Version: "1.0.0"}, nil)
		servers["/"+name] = s
	}
	h := mcp.NewHTTPHandler(nil, &mcp.HTTPOptions{
		Server: func(r *http.Request) *mcp.Server { return servers[r.URL.Path] }, // nil is 404
	})
	server := httptest.NewServer(h)
	defer server.Close()
	defer h.Shutdown(context.Background())

	ctx := context.Background()
	c := mcp.NewClient(mcp.Implementation{Name: "host", Version: "1.0.0"}, nil)
	for _, path := range []string{"/books", "/films", "/songs"} {
		cs, err := c.Connect(ctx, &mcp.HTTP{URL: server.URL + path})
		if err != nil {
			fmt.Println(path, "is not there")
			continue
		}
		defer cs.Close()
		fmt.Println(cs.Server().Name)
	}
	// Output:
	// books
	// films
	// /songs is not there
}

// A server for clients of 2024-11-05, too, which knew another transport. Our
// client finds out by itself that it has to speak it.
func ExampleHTTPHandler_SSE() {
	s := newServer()
	mcp.AddTool(s, mcp.Tool{Name: "echo"}, func(ctx context.Context, req *mcp.Request, in struct{ Text string }) (string, error) {
		return in.Text, nil
	})
	h := mcp.NewHTTPHandler(s, nil)
	mux := http.NewServeMux()
	mux.Handle("/mcp", h)
	mux.Handle("/sse", h.SSE())
	server := httptest.NewServer(mux)
	defer server.Close()
	defer h.Shutdown(context.Background())

	ctx := context.Background()
	c := mcp.NewClient(mcp.Implementation{Name: "host", Version: "1.0.0"}, &mcp.ClientOptions{Versions: []string{mcp.Version20241105}})
	cs, err := c.Connect(ctx, &mcp.HTTP{URL: server.URL + "/sse"})
	if err != nil {
		log.Fatal(err)
	}
	defer cs.Close()
	fmt.Println(cs.Server().ProtocolVersion)
	fmt.Println(mcp.CallTool[string](ctx, cs, "echo", map[string]any{"Text": "hello"}))
	// Output:
	// 2024-11-05
	// hello <nil>
}

// TestHouseReadme builds the programs of the README as a reader would, in a
// module of their own, and runs the client, which starts the server.
func TestHouseReadme(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	module := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		file := filepath.Join(module, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	write("go.mod", fmt.Sprintf("module example\n\ngo 1.24.0\n\nrequire mcpkit/mcp v0.0.0\n\nreplace mcpkit/mcp => %q\n", here))
	var programs []string
	for _, block := range strings.Split(strings.ReplaceAll(string(readme), "\r\n", "\n"), "\n```go\n")[1:] {
		program, _, _ := strings.Cut(block, "```")
		programs = append(programs, program)
	}
	if len(programs) != 2 {
		t.Fatalf("the README has %d Go blocks, not a server and a client", len(programs))
	}
	write("server/main.go", programs[0])
	write("client/main.go", programs[1])
	run := func(name string, args ...string) string {
		t.Helper()
		cmd := exec.Command(name, args...)
		cmd.Dir = module
		cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod", "GOPROXY=off")
		var stderr strings.Builder
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s %q: %v\n%s%s", name, args, err, out, stderr.String())
		}
		return string(out)
	}
	exe := ""
	if runtime.GOOS == "windows" {
		exe = ".exe"
	}
	run("go", "build", "-o", "greeter"+exe, "./server")
	run("go", "build", "-o", "host"+exe, "./client")
	if got, want := run(filepath.Join(module, "host"+exe)), "Hello, Ada!\n"; got != want {
		t.Errorf("the README's client printed %q, not %q", got, want)
	}
}

// TestHouseReadmeNames checks that the options, files and anchors that the
// README names are there.
func TestHouseReadmeNames(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	text := regexp.MustCompile("(?s)\n```.*?\n```\n").ReplaceAllString(string(readme), "\n")
	names := 0
	_, table, _ := strings.Cut(text, "## Options worth knowing")
	table, _, _ = strings.Cut(table, "\n## ")
	for _, row := range strings.Split(table, "\n") {
		cells := strings.Split(row, "|")
		if len(cells) < 3 || !strings.Contains(cells[1], "`") {
			continue
		}
		in := []any{mcp.ServerOptions{}, mcp.ClientOptions{}} // of "on both sides"
		for _, name := range regexp.MustCompile("`[^`]+`").FindAllString(cells[1], -1) {
			of, field, given := strings.Cut(strings.Trim(name, "`"), ".")
			switch {
			case !given:
				field = of
			case of == "ServerOptions":
				in = []any{mcp.ServerOptions{}}
			case of == "ClientOptions":
				in = []any{mcp.ClientOptions{}}
			case of == "CallOptions":
				in = []any{mcp.CallOptions{}}
			case of == "HTTPOptions":
				in = []any{mcp.HTTPOptions{}}
			case of == "HTTP":
				in = []any{mcp.HTTP{}}
			case of == "BearerOptions":
				in = []any{mcp.BearerOptions{}}
			default:
				t.Errorf("%s is in no options", name)
			}
			for _, options := range in {
				if _, ok := reflect.TypeOf(options).FieldByName(field); !ok {
					t.Errorf("%T has no %s", options, field)
				}
			}
			names++
		}
	}
	if names < 10 {
		t.Errorf("only %d options were found", names)
	}
	for _, link := range regexp.MustCompile(`\]\(([^)]+)\)`).FindAllStringSubmatch(text, -1) {
		file, anchor, _ := strings.Cut(strings.ReplaceAll(link[1], "\n", ""), "#")
		if _, err := os.Stat(file); file != "" && err != nil {
			t.Error(err)
		}
		heading := "\n## " + strings.ReplaceAll(anchor, "-", " ") + "\n"
		if anchor != "" && !strings.Contains(strings.ToLower(text), heading) {
			t.Errorf("there is no heading for #%s", anchor)
		}
	}
}

// A schema is compiled once and checks any number of documents, by their
// bytes. An error names each place and the rule that was broken.
func ExampleCompileSchema() {
	order, err := mcp.CompileSchema(json.RawMessage(`{
		"type": "object",
		"properties": {
			"to": {"$ref": "https://example.com/address"},
			"on": {"type": "string", "format": "date"}
		},
		"required": ["to"],
		"additionalProperties": false
	}`), &mcp.SchemaOptions{
		// Nothing is fetched: what a schema refers to is given.
		Documents: map[string]json.RawMessage{"https://example.com/address": json.RawMessage(`{"type": "string", "minLength": 5}`)},
		// Otherwise format says something to people only.
		AssertFormat: true,
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(order.Validate([]byte(`{"to": "12 Analytical Row", "on": "2026-12-01"}`)))
	fmt.Println(order.Validate([]byte(`{"to": "me", "on": "soon", "gift": true}`)))
	// Output:
	// <nil>
	// /to: must be at least 5 characters long; /on: must be a valid date; /gift: is not a known property
}

// The schema of a Go type is that of the JSON that encoding/json makes of it.
// The struct tag jsonschema says more: a description first, then keywords.
func ExampleSchemaFor() {
	type search struct {
		Query string   `json:"query" jsonschema:"what to look for,minLength=1"`
		Sort  string   `json:"sort,omitempty" jsonschema:"enum=name|size,default=name"`
		Limit *int     `json:"limit" jsonschema:"at most so many,minimum=1,maximum=100"`
		In    []string `json:"in,omitempty"`
	}
	schema, err := mcp.SchemaFor[search]()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(strings.ReplaceAll(string(schema), `},"`, "},\n\""))
	// Output:
	// {"type":"object","properties":{"query":{"type":"string","description":"what to look for","minLength":1},
	// "sort":{"type":"string","enum":["name","size"],"default":"name"},
	// "limit":{"type":"integer","description":"at most so many","minimum":1,"maximum":100},
	// "in":{"type":"array","items":{"type":"string"}}},
	// "required":["query"],"additionalProperties":false}
}

// A protected server: RequireBearer in front of the handler, and a document that
// says where tokens come from. Here the authorization server is in the same
// program; JWTVerifier and IntrospectionVerifier are for others.
func ExampleRequireBearer() {
	const resource, issuer = "https://host.example/mcp", "https://host.example"
	as := mcp.NewAuthServer(mcp.AuthServerOptions{
		Issuer: issuer, Resources: []string{resource}, Scopes: []string{"read", "write"}, Registration: true,
		Consent: mcp.ConsentPage(func(w http.ResponseWriter, r *http.Request) (subject string, ok bool) {
			return "ada", true // whoever your session cookie says; otherwise send a page to sign in on
		}),
	})
	s := newServer()
	mcp.AddTool(s, mcp.Tool{Name: "whoami"}, func(_ context.Context, req *mcp.Request, _ struct{}) (string, error) {
		return req.TokenInfo().Subject, nil
	})
	mcp.AddTool(s, mcp.Tool{Name: "delete"}, func(context.Context, *mcp.Request, struct{}) (string, error) { return "gone", nil })
	s.Use(mcp.RequireScopes(func(req *mcp.Request) []string {
		if req.Name == "delete" {
			return []string{"write"}
		}
		return nil
	}))
	metadata := mcp.ResourceMetadataHandler(mcp.ResourceMetadata{Resource: resource, AuthorizationServers: []string{issuer}, ScopesSupported: []string{"read"}})
	bearer := mcp.RequireBearer(mcp.BearerOptions{Resource: resource, Verify: as.Verify, Scopes: []string{"read"}})
	mux := http.NewServeMux()
	mux.Handle("/mcp", bearer(mcp.NewHTTPHandler(s, nil)))
	mux.Handle("/.well-known/oauth-protected-resource", metadata)
	mux.Handle("/.well-known/oauth-protected-resource/", metadata)
	mux.Handle("/", as)

	w := httptest.NewRecorder() // a request without a token
	mux.ServeHTTP(w, httptest.NewRequest("POST", "/mcp", strings.NewReader("{}")))
	fmt.Println(w.Code, w.Header().Get("WWW-Authenticate"))
	// Output:
	// 401 Bearer scope="read", resource_metadata="https://host.example/.well-known/oauth-protected-resource/mcp"
}

// A client that signs its user in when a server asks for a token.
func ExampleOAuth() {
	auth := &mcp.OAuth{
		ClientName: "My program",
		Open: func(ctx context.Context, page string) error {
			fmt.Println("Open this page:", page)
			return nil
		},
		Tokens: mcp.FileTokens(filepath.Join(os.TempDir(), "my-program", "tokens.json")),
	}
	transport := &mcp.HTTP{URL: "https://host.example/mcp", Auth: auth}
	_ = transport // for Client.Connect

	// A program without a user authenticates itself.
	machine := &mcp.OAuth{ClientID: "nightly-job", ClientSecret: os.Getenv("CLIENT_SECRET"), Issuer: "https://as.example", Grant: mcp.ClientCredentials()}
	_ = machine
}
