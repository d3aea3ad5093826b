package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// servers are the demo server once more, built on each SDK: servers that nobody
// here wrote, for our client.
var servers = map[string]func() error{"mcpgo": serveMCPGo, "gosdk": serveGoSDK}

func serveMCPGo() error {
	s := server.NewMCPServer("foreign", "1.0.0", server.WithElicitation(), server.WithRoots(), server.WithLogging(), server.WithCompletions(), server.WithPromptCompletionProvider(completer{}),
		server.WithToolCapabilities(true), server.WithResourceCapabilities(true, true), server.WithPaginationLimit(3), server.WithRecovery())
	s.EnableSampling()
	tool := func(name string, run func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error)) {
		t := mcp.NewTool(name)
		if name == "add" || name == "lie" {
			t.RawOutputSchema = json.RawMessage(sumSchema)
		}
		s.AddTool(t, run)
	}
	tool("echo", func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText(r.GetString("text", "")), nil
	})
	tool("add", func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		sum := r.GetInt("a", 0) + r.GetInt("b", 0)
		return mcp.NewToolResultStructured(object{"sum": sum}, fmt.Sprintf(`{"sum":%d}`, sum)), nil
	})
	tool("lie", func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultStructured(object{"sum": "much"}, "much"), nil
	})
	tool("fail", func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultError("failed on purpose"), nil
	})
	tool("panic", func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return nil, errors.New("broken on purpose")
	})
	tool("countdown", func(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		for i := range r.GetInt("from", 3) {
			time.Sleep(time.Duration(r.GetInt("delayMs", 1)) * time.Millisecond)
			_ = s.SendNotificationToClient(ctx, "notifications/progress", object{"progressToken": r.Params.Meta.ProgressToken, "progress": i + 1})
		}
		return mcp.NewToolResultText("liftoff"), nil
	})
	tool("wait", func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	tool("log", func(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		n := mcp.NewLoggingMessageNotification(mcp.LoggingLevel(r.GetString("level", "")), "", r.GetString("message", ""))
		err := s.SendLogMessageToClient(ctx, n)
		time.Sleep(50 * time.Millisecond) // over HTTP this SDK loses a notice that its answer overtakes
		return mcp.NewToolResultText("logged"), err
	})
	tool("touch", func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		s.SendNotificationToAllClients("notifications/resources/updated", object{"uri": "demo://readme"})
		return mcp.NewToolResultText("touched"), nil
	})
	tool("bonus", func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if s.DeleteTools("bonus-tool"); r.GetBool("have", true) {
			tool("bonus-tool", func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return mcp.NewToolResultText("a bonus"), nil
			})
		}
		return mcp.NewToolResultText("done"), nil
	})
	tool("pay", func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if a := server.ElicitationResponse(r.Params.InputResponses, "page"); a != nil {
			return mcp.NewToolResultText(string(a.Action)), nil
		}
		page := mcp.ElicitationParams{Mode: mcp.ElicitationModeURL, Message: "Pay here", URL: "https://pay.example/7", ElicitationID: "pay-7"}
		return new(server.InputRequestBuilder).Elicit("page", page).ToolResult(), nil
	})
	tool("ask", func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if a := server.ElicitationResponse(r.Params.InputResponses, "who"); a != nil {
			said, err := json.Marshal(a.Content)
			return mcp.NewToolResultText(string(a.Action) + " " + string(said)), err
		}
		form := json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"},"agree":{"type":"boolean"}},"required":["name"]}`)
		return new(server.InputRequestBuilder).Elicit("who", mcp.ElicitationParams{Message: r.GetString("question", "?"), RequestedSchema: form}).ToolResult(), nil
	})
	tool("sample", func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if a := server.SamplingResponse(r.Params.InputResponses, "say"); a != nil {
			return mcp.NewToolResultText(mcp.GetTextFromContent(a.Content)), nil
		}
		message := mcp.SamplingMessage{Role: mcp.RoleUser, Content: mcp.NewTextContent(r.GetString("prompt", ""))}
		return new(server.InputRequestBuilder).Sample("say", mcp.CreateMessageParams{Messages: []mcp.SamplingMessage{message}, MaxTokens: 50}).ToolResult(), nil
	})
	tool("roots", func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		a := server.RootsResponse(r.Params.InputResponses, "where")
		if a == nil {
			return new(server.InputRequestBuilder).Roots("where").ToolResult(), nil
		}
		var lines []string
		for _, root := range a.Roots {
			lines = append(lines, root.URI)
		}
		return mcp.NewToolResultText(strings.Join(lines, "\n")), nil
	})
	s.AddResource(mcp.NewResource("demo://readme", "readme"), func(context.Context, mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
		return []mcp.ResourceContents{mcp.TextResourceContents{URI: "demo://readme", Text: "Read me."}}, nil
	})
	s.AddResource(mcp.NewResource("demo://logo", "logo"), func(context.Context, mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
		blob := base64.StdEncoding.EncodeToString([]byte("\x89PNG\r\n\x1a\n"))
		return []mcp.ResourceContents{mcp.BlobResourceContents{URI: "demo://logo", MIMEType: "image/png", Blob: blob}}, nil
	})
	s.AddResourceTemplate(mcp.NewResourceTemplate("demo://users/{id}/profile", "user"), func(_ context.Context, r mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
		return []mcp.ResourceContents{mcp.TextResourceContents{URI: r.Params.URI, Text: fmt.Sprintf("user %v", r.Params.Arguments["id"])}}, nil
	})
	s.AddPrompt(mcp.NewPrompt("greet", mcp.WithArgument("name"), mcp.WithArgument("style")), func(_ context.Context, r mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return mcp.NewGetPromptResult("", []mcp.PromptMessage{mcp.NewPromptMessage(mcp.RoleUser, mcp.NewTextContent("Greet "+r.Params.Arguments["name"]))}), nil
	})
	s.AddPrompt(mcp.NewPrompt("review"), func(context.Context, mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		embedded := mcp.NewEmbeddedResource(mcp.TextResourceContents{URI: "demo://readme", Text: "Read me."})
		return mcp.NewGetPromptResult("", []mcp.PromptMessage{mcp.NewPromptMessage(mcp.RoleUser, embedded)}), nil
	})
	if os.Getenv("PORT") == "" {
		return server.ServeStdio(s)
	}
	stateless := server.WithStateful(!slices.Contains(os.Args, "-stateless"))
	return serveHTTP(server.NewStreamableHTTPServer(s, stateless, server.WithEventStore(server.NewInMemoryEventStore())), server.NewSSEServer(s))
}

// serveHTTP serves at the port in the environment.
func serveHTTP(streamable, sse http.Handler) error {
	mux := http.NewServeMux()
	mux.Handle("/mcp", streamable)
	mux.Handle("/", sse) // which has more than one path
	return http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), mux)
}

// A completer proposes styles for any argument.
type completer struct{}

func (completer) CompletePromptArgument(_ context.Context, _ string, argument mcp.CompleteArgument, _ mcp.CompleteContext) (*mcp.Completion, error) {
	return &mcp.Completion{Values: complete(argument.Value)}, nil
}
