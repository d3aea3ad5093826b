package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type goSDKServer struct{ *mcp.Server }

// serveGoSDK is the demo server once more, built on the official Go SDK. It may
// be told to ping its client all the time. Not one of 2026-07-28: this SDK then
// does so too, and ends the session when such a client rightly says nothing.
func serveGoSDK() error {
	pings := time.Duration(0)
	if slices.Contains(os.Args, "-ping") {
		pings = 20 * time.Millisecond
	}
	quiet := func(context.Context, *mcp.SubscribeRequest) error { return nil }
	s := goSDKServer{mcp.NewServer(&mcp.Implementation{Name: "foreign", Version: "1.0.0"}, &mcp.ServerOptions{
		PageSize:           3,
		KeepAlive:          pings,
		SubscribeHandler:   quiet,
		UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
		Capabilities:       &mcp.ServerCapabilities{Logging: &mcp.LoggingCapabilities{}},
		CompletionHandler: func(_ context.Context, r *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
			out := &mcp.CompleteResult{}
			out.Completion.Values = complete(r.Params.Argument.Value)
			return out, nil
		},
	})}
	s.plain()
	s.telling()
	s.asking()
	s.rest()
	if os.Getenv("PORT") == "" {
		return s.Run(context.Background(), &mcp.StdioTransport{})
	}
	this := func(*http.Request) *mcp.Server { return s.Server }
	options := &mcp.StreamableHTTPOptions{
		Stateless:                    slices.Contains(os.Args, "-stateless"), // only then it speaks 2026-07-28
		EventStore:                   mcp.NewMemoryEventStore(nil),
		PropagateRequestCancellation: true,
	}
	return serveHTTP(mcp.NewStreamableHTTPHandler(this, options), mcp.NewSSEHandler(this, nil))
}

func complete(value string) []string {
	values := []string{}
	for _, style := range []string{"formal", "friendly", "short"} {
		if strings.HasPrefix(style, value) {
			values = append(values, style)
		}
	}
	return values
}

// args are what any tool here takes.
type args struct {
	Text, Question, Prompt, Level, Message string
	A, B, From, DelayMS                    int
	Have                                   bool
}

func saying(text string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}
}

const sumSchema = `{"type":"object","properties":{"sum":{"type":"integer"}},"required":["sum"]}`

func (s goSDKServer) tool(name string, run func(context.Context, *mcp.CallToolRequest, args) (*mcp.CallToolResult, error)) {
	t := &mcp.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)}
	if name == "add" || name == "lie" {
		t.OutputSchema = json.RawMessage(sumSchema)
	}
	s.AddTool(t, func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		var in args
		if err := json.Unmarshal(r.Params.Arguments, &in); err != nil && len(r.Params.Arguments) > 0 {
			return nil, err
		}
		return run(ctx, r, in)
	})
}

// plain adds tools that only answer; lie breaks its own output schema.
func (s goSDKServer) plain() {
	s.tool("echo", func(_ context.Context, _ *mcp.CallToolRequest, in args) (*mcp.CallToolResult, error) {
		return saying(in.Text), nil
	})
	s.tool("add", func(_ context.Context, _ *mcp.CallToolRequest, in args) (*mcp.CallToolResult, error) {
		r := saying(fmt.Sprintf(`{"sum":%d}`, in.A+in.B))
		r.StructuredContent = object{"sum": in.A + in.B}
		return r, nil
	})
	s.tool("lie", func(context.Context, *mcp.CallToolRequest, args) (*mcp.CallToolResult, error) {
		r := saying("much")
		r.StructuredContent = object{"sum": "much"}
		return r, nil
	})
	s.tool("fail", func(context.Context, *mcp.CallToolRequest, args) (*mcp.CallToolResult, error) {
		r := saying("failed on purpose")
		r.IsError = true
		return r, nil
	})
	s.tool("wait", func(ctx context.Context, _ *mcp.CallToolRequest, _ args) (*mcp.CallToolResult, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
}

// telling adds tools that tell the client something beside their result.
func (s goSDKServer) telling() {
	s.tool("countdown", func(ctx context.Context, r *mcp.CallToolRequest, in args) (*mcp.CallToolResult, error) {
		for n := range in.From {
			time.Sleep(time.Duration(in.DelayMS) * time.Millisecond)
			p := &mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: float64(n + 1)}
			if err := r.Session.NotifyProgress(ctx, p); err != nil {
				return nil, err
			}
		}
		return saying("lift-off"), nil
	})
	s.tool("log", func(ctx context.Context, r *mcp.CallToolRequest, in args) (*mcp.CallToolResult, error) {
		err := r.Session.Log(ctx, &mcp.LoggingMessageParams{Level: mcp.LoggingLevel(in.Level), Data: in.Message})
		return saying("logged"), err
	})
	s.tool("touch", func(ctx context.Context, _ *mcp.CallToolRequest, _ args) (*mcp.CallToolResult, error) {
		return saying("touched"), s.ResourceUpdated(ctx, &mcp.ResourceUpdatedNotificationParams{URI: "demo://readme"})
	})
	s.tool("bonus", func(_ context.Context, _ *mcp.CallToolRequest, in args) (*mcp.CallToolResult, error) {
		s.RemoveTools("bonus-tool")
		if in.Have {
			s.tool("bonus-tool", func(context.Context, *mcp.CallToolRequest, args) (*mcp.CallToolResult, error) {
				return saying("a bonus"), nil
			})
		}
		return saying("done"), nil
	})
}

// asking adds tools that ask the client.
func (s goSDKServer) asking() {
	ask := func(name string, question func(args) mcp.InputRequest, tell func(mcp.InputResponse) (string, error)) {
		s.tool(name, func(_ context.Context, r *mcp.CallToolRequest, in args) (*mcp.CallToolResult, error) {
			answer, ok := r.Params.InputResponses["key"]
			if !ok {
				return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"key": question(in)}}, nil
			}
			text, err := tell(answer)
			return saying(text), err
		})
	}
	tellElicited := func(a mcp.InputResponse) (string, error) {
		said, err := json.Marshal(a.(*mcp.ElicitResult).Content)
		return a.(*mcp.ElicitResult).Action + " " + string(said), err
	}
	ask("ask", func(in args) mcp.InputRequest {
		form := json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"},"agree":{"type":"boolean"}},"required":["name"]}`)
		return &mcp.ElicitParams{Mode: "form", Message: in.Question, RequestedSchema: form}
	}, tellElicited)
	ask("pay", func(args) mcp.InputRequest {
		return &mcp.ElicitParams{Mode: "url", Message: "Pay here", URL: "https://pay.example/7", ElicitationID: "pay-7"}
	}, tellElicited)
	ask("sample", func(in args) mcp.InputRequest {
		message := &mcp.SamplingMessage{Role: "user", Content: &mcp.TextContent{Text: in.Prompt}}
		return &mcp.CreateMessageParams{Messages: []*mcp.SamplingMessage{message}, MaxTokens: 50}
	}, func(a mcp.InputResponse) (string, error) {
		if r, ok := a.(*mcp.CreateMessageWithToolsResult); ok {
			return r.Content[0].(*mcp.TextContent).Text, nil
		}
		return a.(*mcp.CreateMessageResult).Content.(*mcp.TextContent).Text, nil
	})
	ask("roots", func(args) mcp.InputRequest { return &mcp.ListRootsParams{} }, func(a mcp.InputResponse) (string, error) {
		var lines []string
		for _, root := range a.(*mcp.ListRootsResult).Roots {
			lines = append(lines, root.URI)
		}
		return strings.Join(lines, "\n"), nil
	})
}

// rest adds resources and prompts.
func (s goSDKServer) rest() {
	read := func(text string, blob []byte) mcp.ResourceHandler {
		return func(_ context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			c := &mcp.ResourceContents{URI: r.Params.URI, Text: text, Blob: blob}
			if text == "" && blob == nil {
				c.Text = "user " + r.Params.URI
			}
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{c}}, nil
		}
	}
	s.AddResource(&mcp.Resource{URI: "demo://readme", Name: "readme"}, read("Read me.", nil))
	s.AddResource(&mcp.Resource{URI: "demo://logo", Name: "logo"}, read("", []byte("\x89PNG\r\n\x1a\n")))
	s.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: "demo://users/{id}/profile", Name: "user"}, read("", nil))
	s.AddPrompt(&mcp.Prompt{Name: "greet", Arguments: []*mcp.PromptArgument{{Name: "name"}, {Name: "style"}}}, func(_ context.Context, r *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		if r.Params.Arguments["name"] == "" {
			return nil, errors.New("greet whom?")
		}
		return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: "Greet " + r.Params.Arguments["name"]}}}}, nil
	})
	s.AddPrompt(&mcp.Prompt{Name: "review"}, func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		embedded := &mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "demo://readme", Text: "Read me."}}
		return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: embedded}}}, nil
	})
}
