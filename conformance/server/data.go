package main

import (
	"context"

	"mcpkit/mcp"
)

// text returns a handler for a resource with this text.
func text(body string) mcp.ResourceHandler {
	return func(_ context.Context, req *mcp.Request) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Contents: []mcp.ResourceContents{
			{URI: req.Name, MIMEType: "text/plain", Text: body},
		}}, nil
	}
}

func addResources(s *mcp.Server) {
	s.AddResource(mcp.Resource{URI: "test://static-text", Name: "Static Text", Description: "A text", MIMEType: "text/plain"},
		text("This is the content of the static text resource."))
	s.AddResource(mcp.Resource{URI: "test://static-binary", Name: "Static Binary", Description: "An image", MIMEType: "image/png"},
		func(_ context.Context, req *mcp.Request) (*mcp.ReadResourceResult, error) {
			return &mcp.ReadResourceResult{Contents: []mcp.ResourceContents{{URI: req.Name, MIMEType: "image/png", Blob: png}}}, nil
		})
	s.AddResource(mcp.Resource{URI: "test://watched-resource", Name: "Watched", Description: "To be subscribed to", MIMEType: "text/plain"},
		text("Watched resource content"))
	s.AddResourceTemplate(mcp.ResourceTemplate{URITemplate: "test://template/{id}/data", Name: "Template", Description: "One for every id", MIMEType: "application/json"},
		func(_ context.Context, req *mcp.Request) (*mcp.ReadResourceResult, error) {
			return &mcp.ReadResourceResult{Contents: []mcp.ResourceContents{
				{URI: req.Name, MIMEType: "application/json", Text: `{"id":"` + req.Vars["id"] + `"}`},
			}}, nil
		})
}

// prompt returns a handler for a prompt that is always the same.
func prompt(content ...mcp.Content) mcp.PromptHandler {
	return func(context.Context, *mcp.Request) (*mcp.GetPromptResult, error) {
		r := &mcp.GetPromptResult{}
		for _, c := range content {
			r.Messages = append(r.Messages, mcp.PromptMessage{Role: "user", Content: c})
		}
		return r, nil
	}
}

func addPrompts(s *mcp.Server) {
	s.AddPrompt(mcp.Prompt{Name: "test_simple_prompt", Description: "A simple prompt"}, prompt(mcp.Text("This is a simple prompt for testing.")))
	s.AddPrompt(mcp.Prompt{Name: "test_prompt_with_arguments", Description: "A prompt with arguments", Arguments: []mcp.PromptArgument{
		{Name: "arg1", Description: "The first", Required: true}, {Name: "arg2", Description: "The second", Required: true}}},
		func(ctx context.Context, req *mcp.Request) (*mcp.GetPromptResult, error) {
			return prompt(mcp.Text("Prompt with arguments: arg1='"+req.Vars["arg1"]+"', arg2='"+req.Vars["arg2"]+"'"))(ctx, req)
		})
	s.AddPrompt(mcp.Prompt{Name: "test_prompt_with_embedded_resource", Description: "A prompt with a resource", Arguments: []mcp.PromptArgument{
		{Name: "resourceUri", Description: "Its URI", Required: true}}},
		func(ctx context.Context, req *mcp.Request) (*mcp.GetPromptResult, error) {
			return prompt(mcp.EmbeddedResource(mcp.ResourceContents{
				URI: req.Vars["resourceUri"], MIMEType: "text/plain", Text: "Embedded resource content for testing.",
			}), mcp.Text("Please process the embedded resource above."))(ctx, req)
		})
	s.AddPrompt(mcp.Prompt{Name: "test_prompt_with_image", Description: "A prompt with an image"},
		prompt(mcp.Image(png, "image/png"), mcp.Text("Please analyze the image above.")))
	s.AddPrompt(mcp.Prompt{Name: "test_input_required_result_prompt", Description: "A prompt that asks first"},
		func(ctx context.Context, req *mcp.Request) (*mcp.GetPromptResult, error) {
			answer, err := req.Elicit(ctx, "user_context", confirmation)
			if err != nil {
				return nil, err
			}
			return prompt(mcp.Text("Use this context: "+string(answer.Content)))(ctx, req)
		})
}
