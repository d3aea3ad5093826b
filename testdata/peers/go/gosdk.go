package main

import (
	"context"
	"errors"
	"os/exec"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// goSDK is the official Go SDK.
type goSDK struct {
	session  *mcp.ClientSession
	progress func(float64)
}

func (p *goSDK) connect(ctx context.Context, version string, command []string) (string, string, error) {
	client := mcp.NewClient(&mcp.Implementation{Name: "gosdk", Version: "1.0.0"}, &mcp.ClientOptions{
		ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: elicit(r.Params.Message, r.Params.RequestedSchema)}, nil
		},
		CreateMessageHandler: func(_ context.Context, r *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
			prompt, _ := r.Params.Messages[0].Content.(*mcp.TextContent)
			return &mcp.CreateMessageResult{Role: "assistant", Model: "peer-model", StopReason: "endTurn", Content: &mcp.TextContent{Text: sample(prompt.Text)}}, nil
		},
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			p.progress(r.Params.Progress)
		},
	})
	for _, r := range roots {
		client.AddRoots(&mcp.Root{URI: r[0], Name: r[1]})
	}
	transport := &mcp.CommandTransport{Command: exec.Command(command[0], command[1:]...), TerminateDuration: 2 * time.Second}
	options := &mcp.ClientSessionOptions{}
	if version != "auto" {
		options.ProtocolVersion = version
	}
	var err error
	if p.session, err = client.Connect(ctx, transport, options); err != nil {
		return "", "", err
	}
	info := p.session.InitializeResult()
	if info.ServerInfo == nil {
		return info.ProtocolVersion, "", nil
	}
	return info.ProtocolVersion, info.ServerInfo.Name, nil
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
	params := &mcp.CallToolParams{Name: tool, Arguments: args}
	if progress != nil {
		p.progress = progress
		params.Meta = mcp.Meta{"progressToken": "token-1"}
	}
	r, err := p.session.CallTool(ctx, params)
	if err != nil {
		return nil, err
	}
	var text strings.Builder
	for _, c := range r.Content {
		if t, ok := c.(*mcp.TextContent); ok {
			text.WriteString(t.Text)
		}
	}
	return &result{text: text.String(), structured: r.StructuredContent, failed: r.IsError}, nil
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

func (p *goSDK) code(err error) int {
	var rpc *jsonrpc.Error
	if errors.As(err, &rpc) {
		return int(rpc.Code)
	}
	return 0
}

func (p *goSDK) close() error { return p.session.Close() }
