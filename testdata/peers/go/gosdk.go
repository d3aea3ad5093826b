package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// goSDK is the official Go SDK.
type goSDK struct {
	session  *mcp.ClientSession
	modern   bool
	progress func(float64)
	meta     mcp.Meta // of every call
}

func (p *goSDK) connect(ctx context.Context, version string, command []string) (string, string, error) {
	options := &mcp.ClientOptions{
		Capabilities: &mcp.ClientCapabilities{
			RootsV2:     &mcp.RootCapabilities{},
			Sampling:    &mcp.SamplingCapabilities{Tools: &mcp.SamplingToolsCapabilities{}},
			Elicitation: &mcp.ElicitationCapabilities{Form: &mcp.FormElicitationCapabilities{}, URL: &mcp.URLElicitationCapabilities{}},
		},
		ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			if r.Params.Mode == "url" {
				open(r.Params.Message, r.Params.URL)
				return &mcp.ElicitResult{Action: "accept"}, nil
			}
			return &mcp.ElicitResult{Action: "accept", Content: elicit(r.Params.Message, r.Params.RequestedSchema)}, nil
		},
		CreateMessageWithToolsHandler: model,
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			p.progress(r.Params.Progress)
		},
		LoggingMessageHandler: func(_ context.Context, r *mcp.LoggingMessageRequest) {
			data, _ := json.Marshal(r.Params.Data)
			heard <- notice{"notifications/message", fmt.Sprintf("%s %s", r.Params.Level, data)}
		},
		ResourceUpdatedHandler: func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) {
			heard <- notice{"notifications/resources/updated", r.Params.URI}
		},
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) {
			heard <- notice{method: "notifications/tools/list_changed"}
		},
		PromptListChangedHandler: func(context.Context, *mcp.PromptListChangedRequest) {
			heard <- notice{method: "notifications/prompts/list_changed"}
		},
		ResourceListChangedHandler: func(context.Context, *mcp.ResourceListChangedRequest) {
			heard <- notice{method: "notifications/resources/list_changed"}
		},
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "gosdk", Version: "1.0.0"}, options)
	for _, r := range roots {
		client.AddRoots(&mcp.Root{URI: r[0], Name: r[1]})
	}
	var transport mcp.Transport
	switch url := command[0]; {
	case strings.HasSuffix(url, "/sse"):
		transport = &mcp.SSEClientTransport{Endpoint: url}
	case strings.HasPrefix(url, "http"):
		transport = &mcp.StreamableClientTransport{Endpoint: url}
	default:
		transport = &mcp.CommandTransport{Command: exec.Command(command[0], command[1:]...), TerminateDuration: 2 * time.Second}
	}
	if version == "auto" {
		version = ""
	}
	var err error
	if p.session, err = client.Connect(ctx, transport, &mcp.ClientSessionOptions{ProtocolVersion: version}); err != nil {
		return "", "", err
	}
	info := p.session.InitializeResult()
	p.modern = info.ProtocolVersion >= "2026"
	if info.ServerInfo == nil {
		return info.ProtocolVersion, "", nil
	}
	return info.ProtocolVersion, info.ServerInfo.Name, nil
}

// model uses the tool that it is offered, once.
func model(_ context.Context, r *mcp.CreateMessageWithToolsRequest) (*mcp.CreateMessageWithToolsResult, error) {
	answer := &mcp.CreateMessageWithToolsResult{Role: "assistant", Model: "peer-model", StopReason: "endTurn"}
	switch c := r.Params.Messages[len(r.Params.Messages)-1].Content[0].(type) {
	case *mcp.ToolResultContent:
		answer.Content = []mcp.Content{&mcp.TextContent{Text: "it is " + c.Content[0].(*mcp.TextContent).Text}}
	case *mcp.TextContent:
		answer.Content = []mcp.Content{&mcp.TextContent{Text: sample(c.Text)}}
		if len(r.Params.Tools) > 0 {
			answer.StopReason = "toolUse"
			answer.Content = []mcp.Content{&mcp.ToolUseContent{ID: "use-1", Name: r.Params.Tools[0].Name, Input: object{"a": 2, "b": 40}}}
		}
	}
	return answer, nil
}

func (p *goSDK) list(ctx context.Context) (map[string][]string, error) {
	out := map[string][]string{}
	for v, err := range p.session.Tools(ctx, nil) {
		if err != nil {
			return nil, err
		}
		out["tools"] = append(out["tools"], v.Name)
	}
	for v, err := range p.session.Resources(ctx, nil) {
		if err != nil {
			return nil, err
		}
		out["resources"] = append(out["resources"], v.URI)
	}
	for v, err := range p.session.ResourceTemplates(ctx, nil) {
		if err != nil {
			return nil, err
		}
		out["templates"] = append(out["templates"], v.URITemplate)
	}
	for v, err := range p.session.Prompts(ctx, nil) {
		if err != nil {
			return nil, err
		}
		out["prompts"] = append(out["prompts"], v.Name)
	}
	return out, nil
}

func (p *goSDK) call(ctx context.Context, tool string, args map[string]any, progress func(float64)) (*result, error) {
	params := &mcp.CallToolParams{Name: tool, Arguments: args, Meta: maps.Clone(p.meta)}
	if progress != nil {
		p.progress = progress
		params.Meta = mcp.Meta{"progressToken": "token-1"}
	}
	r, err := p.session.CallTool(ctx, params)
	if err != nil {
		return nil, err
	}
	out := &result{structured: r.StructuredContent, failed: r.IsError}
	for _, c := range r.Content {
		kind := "text"
		switch c := c.(type) {
		case *mcp.TextContent:
			out.text += c.Text
		case *mcp.ImageContent:
			kind = "image"
		case *mcp.AudioContent:
			kind = "audio"
		case *mcp.ResourceLink:
			kind = "resource_link"
		case *mcp.EmbeddedResource:
			kind = "resource"
		}
		out.kinds = append(out.kinds, kind)
	}
	return out, nil
}

func (p *goSDK) read(ctx context.Context, uri string) (string, string, error) {
	r, err := p.session.ReadResource(ctx, &mcp.ReadResourceParams{URI: uri})
	if err != nil {
		return "", "", err
	}
	return r.Contents[0].Text, string(r.Contents[0].Blob), nil
}

func (p *goSDK) prompt(ctx context.Context, name string, args map[string]string) (text, embedded string, err error) {
	r, err := p.session.GetPrompt(ctx, &mcp.GetPromptParams{Name: name, Arguments: args})
	if err != nil {
		return "", "", err
	}
	for _, m := range r.Messages {
		switch c := m.Content.(type) {
		case *mcp.TextContent:
			text += c.Text
		case *mcp.EmbeddedResource:
			embedded = c.Resource.URI
		}
	}
	return text, embedded, nil
}

func (p *goSDK) page(ctx context.Context, cursor string) (names []string, next string, err error) {
	r, err := p.session.ListTools(ctx, &mcp.ListToolsParams{Cursor: cursor})
	if err != nil {
		return nil, "", err
	}
	for _, t := range r.Tools {
		names = append(names, t.Name)
	}
	return names, r.NextCursor, nil
}

func (p *goSDK) complete(ctx context.Context, ref reference, argument, value string, filled ...string) ([]string, error) {
	params := &mcp.CompleteParams{Ref: &mcp.CompleteReference{Type: "ref/prompt", Name: ref.name}, Argument: mcp.CompleteParamsArgument{Name: argument, Value: value}}
	if ref.uri != "" {
		params.Ref = &mcp.CompleteReference{Type: "ref/resource", URI: ref.uri}
	}
	if len(filled) == 2 {
		params.Context = &mcp.CompleteContext{Arguments: map[string]string{filled[0]: filled[1]}}
	}
	r, err := p.session.Complete(ctx, params)
	if err != nil {
		return nil, err
	}
	return r.Completion.Values, nil
}

func (p *goSDK) level(ctx context.Context, level string) error {
	if p.modern {
		p.meta = mcp.Meta{mcp.MetaKeyLogLevel: level}
		return nil
	}
	return p.session.SetLoggingLevel(ctx, &mcp.SetLoggingLevelParams{Level: mcp.LoggingLevel(level)})
}

// listen: this SDK listens to the lists as soon as it is connected.
func (p *goSDK) listen(ctx context.Context, uri string) (func() error, error) {
	if uri == "" {
		return func() error { return nil }, nil
	}
	end := func() error { return p.session.Unsubscribe(ctx, &mcp.UnsubscribeParams{URI: uri}) }
	return end, p.session.Subscribe(ctx, &mcp.SubscribeParams{URI: uri})
}

func (p *goSDK) ping(ctx context.Context) error { return p.session.Ping(ctx, nil) }

func (p *goSDK) code(err error) int {
	var rpc *jsonrpc.Error
	if errors.As(err, &rpc) {
		return int(rpc.Code)
	}
	return 0
}

func (p *goSDK) id() string { return p.session.ID() }

func (p *goSDK) close() error { return p.session.Close() }
