package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
)

// mcpGo is github.com/mark3labs/mcp-go.
type mcpGo struct {
	client   *client.Client
	progress func(float64)
}

// Elicit, CreateMessage and ListRoots are the three handlers of that SDK.
func (p *mcpGo) Elicit(_ context.Context, r mcp.ElicitationRequest) (*mcp.ElicitationResult, error) {
	if r.Params.Mode == mcp.ElicitationModeURL {
		open(r.Params.Message, r.Params.URL)
		return &mcp.ElicitationResult{ElicitationResponse: mcp.ElicitationResponse{Action: mcp.ElicitationResponseActionAccept}}, nil
	}
	answer := mcp.ElicitationResponse{Action: mcp.ElicitationResponseActionAccept, Content: elicit(r.Params.Message, r.Params.RequestedSchema)}
	return &mcp.ElicitationResult{ElicitationResponse: answer}, nil
}

func (p *mcpGo) CreateMessage(_ context.Context, r mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
	answer := &mcp.CreateMessageResult{Model: "peer-model", StopReason: "endTurn"}
	answer.Role = mcp.RoleAssistant
	// In a round of 2026-07-28 this SDK leaves the content undecoded.
	last, err := mcp.ParseSamplingContent(r.Messages[len(r.Messages)-1].Content)
	if err != nil {
		return nil, err
	}
	if done, ok := mcp.AsToolResultContent(last); ok {
		answer.Content = mcp.NewTextContent("it is " + mcp.GetTextFromContent(done.Content[0]))
	} else if len(r.Tools) > 0 {
		answer.StopReason, answer.Content = "toolUse", mcp.NewToolUseContent("use-1", r.Tools[0].Name, object{"a": 2, "b": 40})
	} else {
		answer.Content = mcp.NewTextContent(sample(mcp.GetTextFromContent(last)))
	}
	return answer, nil
}

func (p *mcpGo) ListRoots(context.Context, mcp.ListRootsRequest) (*mcp.ListRootsResult, error) {
	r := &mcp.ListRootsResult{}
	for _, root := range roots {
		r.Roots = append(r.Roots, mcp.Root{URI: root[0], Name: root[1]})
	}
	return r, nil
}

func (p *mcpGo) connect(ctx context.Context, version string, command []string) (string, string, error) {
	if version == "auto" {
		version = ""
	}
	var server transport.Interface
	var err error
	switch url := command[0]; {
	case strings.HasSuffix(url, "/sse"):
		server, err = transport.NewSSE(url)
	case strings.HasPrefix(url, "http"):
		var options []transport.StreamableHTTPCOption
		if version < "2026" { // at 2026-07-28 this would make it fall back
			options = append(options, transport.WithContinuousListening())
		}
		server, err = transport.NewStreamableHTTP(url, options...)
	default: // not NewStdioMCPClient: its client takes no handlers
		server = transport.NewStdio(command[0], nil, command[1:]...)
	}
	if err != nil {
		return "", "", err
	}
	capabilities := mcp.ClientCapabilities{
		Elicitation: &mcp.ElicitationCapability{Form: &struct{}{}, URL: &struct{}{}},
		Sampling:    &mcp.SamplingCapability{Tools: &struct{}{}},
	}
	handlers := []client.ClientOption{client.WithClientCapabilities(capabilities), client.WithElicitationHandler(p), client.WithSamplingHandler(p), client.WithRootsHandler(p)}
	if strings.HasSuffix(command[0], "/sse") { // where it cannot be asked
		capabilities, handlers = mcp.ClientCapabilities{}, nil
	}
	p.client = client.NewClient(server, handlers...)
	p.client.OnNotification(func(n mcp.JSONRPCNotification) {
		switch params := n.Params.AdditionalFields; n.Method {
		case "notifications/progress":
			p.progress(params["progress"].(float64))
		case "notifications/message":
			data, _ := json.Marshal(params["data"])
			heard <- notice{n.Method, fmt.Sprintf("%s %s", params["level"], data)}
		default:
			uri, _ := params["uri"].(string)
			heard <- notice{n.Method, uri}
		}
	})
	if err := p.client.Start(ctx); err != nil {
		return "", "", err
	}
	request := mcp.InitializeRequest{}
	request.Params.ProtocolVersion = version
	request.Params.Capabilities = capabilities
	request.Params.ClientInfo = mcp.Implementation{Name: "mcpgo", Version: "1.0.0"}
	r, err := p.client.Initialize(ctx, request)
	if err != nil {
		return "", "", err
	}
	return r.ProtocolVersion, r.ServerInfo.Name, nil
}

func (p *mcpGo) list(ctx context.Context) (map[string][]string, error) {
	out := map[string][]string{}
	for v, err := range p.client.IterTools(ctx, mcp.ListToolsRequest{}) {
		if err != nil {
			return nil, err
		}
		out["tools"] = append(out["tools"], v.Name)
	}
	for v, err := range p.client.IterResources(ctx, mcp.ListResourcesRequest{}) {
		if err != nil {
			return nil, err
		}
		out["resources"] = append(out["resources"], v.URI)
	}
	for v, err := range p.client.IterResourceTemplates(ctx, mcp.ListResourceTemplatesRequest{}) {
		if err != nil {
			return nil, err
		}
		out["templates"] = append(out["templates"], v.URITemplate.Raw())
	}
	for v, err := range p.client.IterPrompts(ctx, mcp.ListPromptsRequest{}) {
		if err != nil {
			return nil, err
		}
		out["prompts"] = append(out["prompts"], v.Name)
	}
	return out, nil
}

func (p *mcpGo) call(ctx context.Context, tool string, args map[string]any, progress func(float64)) (*result, error) {
	params := mcp.CallToolParams{Name: tool, Arguments: args}
	if progress != nil {
		p.progress = progress
		params.Meta = &mcp.Meta{ProgressToken: "token-1"}
	}
	r, err := p.client.CallTool(ctx, mcp.CallToolRequest{Params: params})
	if err != nil {
		return nil, err
	}
	out := &result{structured: r.StructuredContent, failed: r.IsError}
	for _, c := range r.Content {
		kind := "text"
		switch c := c.(type) {
		case mcp.TextContent:
			out.text += c.Text
		case mcp.ImageContent:
			kind = "image"
		case mcp.AudioContent:
			kind = "audio"
		case mcp.ResourceLink:
			kind = "resource_link"
		case mcp.EmbeddedResource:
			kind = "resource"
		}
		out.kinds = append(out.kinds, kind)
	}
	return out, nil
}

func (p *mcpGo) read(ctx context.Context, uri string) (string, string, error) {
	r, err := p.client.ReadResource(ctx, mcp.ReadResourceRequest{Params: mcp.ReadResourceParams{URI: uri}})
	if err != nil {
		return "", "", err
	}
	if b, ok := r.Contents[0].(mcp.BlobResourceContents); ok {
		blob, err := base64.StdEncoding.DecodeString(b.Blob)
		return "", string(blob), err
	}
	return r.Contents[0].(mcp.TextResourceContents).Text, "", nil
}

func (p *mcpGo) prompt(ctx context.Context, name string, args map[string]string) (text, embedded string, err error) {
	r, err := p.client.GetPrompt(ctx, mcp.GetPromptRequest{Params: mcp.GetPromptParams{Name: name, Arguments: args}})
	if err != nil {
		return "", "", err
	}
	for _, m := range r.Messages {
		switch c := m.Content.(type) {
		case mcp.TextContent:
			text += c.Text
		case mcp.EmbeddedResource:
			embedded = c.Resource.(mcp.TextResourceContents).URI
		}
	}
	return text, embedded, nil
}

func (p *mcpGo) page(ctx context.Context, cursor string) (names []string, next string, err error) {
	request := mcp.ListToolsRequest{}
	request.Params.Cursor = mcp.Cursor(cursor)
	r, err := p.client.ListToolsByPage(ctx, request)
	if err != nil {
		return nil, "", err
	}
	for _, t := range r.Tools {
		names = append(names, t.Name)
	}
	return names, string(r.NextCursor), nil
}

func (p *mcpGo) complete(ctx context.Context, ref reference, argument, value string, filled ...string) ([]string, error) {
	request := mcp.CompleteRequest{}
	request.Params.Argument = mcp.CompleteArgument{Name: argument, Value: value}
	if request.Params.Ref = (mcp.PromptReference{Type: "ref/prompt", Name: ref.name}); ref.uri != "" {
		request.Params.Ref = mcp.ResourceReference{Type: "ref/resource", URI: ref.uri}
	}
	if len(filled) == 2 {
		request.Params.Context.Arguments = map[string]string{filled[0]: filled[1]}
	}
	r, err := p.client.Complete(ctx, request)
	if err != nil {
		return nil, err
	}
	return r.Completion.Values, nil
}

func (p *mcpGo) level(ctx context.Context, level string) error {
	request := mcp.SetLevelRequest{}
	request.Params.Level = mcp.LoggingLevel(level)
	return p.client.SetLevel(ctx, request)
}

// listen: before 2026-07-28 the lists need no asking.
func (p *mcpGo) listen(ctx context.Context, uri string) (func() error, error) {
	if p.client.ProtocolVersion() >= "2026" {
		filter := mcp.SubscriptionFilter{ResourceSubscriptions: []string{uri}}
		if uri == "" {
			filter = mcp.SubscriptionFilter{ToolsListChanged: true, PromptsListChanged: true, ResourcesListChanged: true}
		}
		end, err := p.client.ListenAsync(context.Background(), filter, nil)
		return func() error { end(); return nil }, err
	}
	if uri == "" {
		return func() error { return nil }, nil
	}
	on, off := mcp.SubscribeRequest{}, mcp.UnsubscribeRequest{}
	on.Params.URI, off.Params.URI = uri, uri
	return func() error { return p.client.Unsubscribe(ctx, off) }, p.client.Subscribe(ctx, on)
}

func (p *mcpGo) ping(ctx context.Context) error { return p.client.Ping(ctx) }

// code: this SDK turns the standard codes into errors without a number.
func (p *mcpGo) code(err error) int {
	known := map[error]int{mcp.ErrInvalidParams: -32602, mcp.ErrInternalError: -32603, mcp.ErrMethodNotFound: -32601, mcp.ErrResourceNotFound: -32002}
	for sentinel, code := range known {
		if errors.Is(err, sentinel) {
			return code
		}
	}
	return 0
}

func (p *mcpGo) id() string { return p.client.GetSessionId() }

func (p *mcpGo) close() error { return p.client.Close() }
