package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"mcpkit/mcp"
)

// A picture of one pixel, and a sound of no length.
var (
	png = []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89" +
		"\x00\x00\x00\rIDATx\x9cc\xfc\xcf\xc0P\x0f\x00\x04\x85\x01\x80\x84\xa9\x8c!\x00\x00\x00\x00IEND\xaeB`\x82")
	wav = []byte("RIFF$\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00@\x1f\x00\x00@\x1f\x00\x00\x01\x00\x08\x00data\x00\x00\x00\x00")
)

// none are the arguments of a tool that has none.
type none struct{}

// add registers a tool whose result is content.
func add(s *mcp.Server, name, description string, content ...mcp.Content) {
	mcp.AddTool(s, mcp.Tool{Name: name, Description: description},
		func(context.Context, *mcp.Request, none) ([]mcp.Content, error) { return content, nil })
}

func addTools(s *mcp.Server) {
	embedded := mcp.EmbeddedResource(mcp.ResourceContents{
		URI: "test://embedded-resource", MIMEType: "text/plain", Text: "This is an embedded resource content.",
	})
	add(s, "test_simple_text", "Returns a text", mcp.Text("This is a simple text response for testing."))
	add(s, "test_image_content", "Returns an image", mcp.Image(png, "image/png"))
	add(s, "test_audio_content", "Returns a sound", mcp.Audio(wav, "audio/wav"))
	add(s, "test_embedded_resource", "Returns a resource", embedded)
	add(s, "test_multiple_content_types", "Returns a text, an image and a resource",
		mcp.Text("Multiple content types test:"), mcp.Image(png, "image/png"), embedded)
	mcp.AddTool(s, mcp.Tool{Name: "test_error_handling", Description: "Always fails"},
		func(context.Context, *mcp.Request, none) (string, error) {
			return "", errors.New("This tool intentionally returns an error for testing")
		})
	mcp.AddTool(s, mcp.Tool{Name: "test_tool_with_logging", Description: "Logs three messages"},
		func(ctx context.Context, req *mcp.Request, _ none) (string, error) {
			for _, text := range []string{"Tool execution started", "Tool processing data", "Tool execution completed"} {
				req.Log().Info(text)
				if err := pause(ctx, 50*time.Millisecond); err != nil {
					return "", err
				}
			}
			return "Tool with logging executed successfully", nil
		})
	mcp.AddTool(s, mcp.Tool{Name: "test_tool_with_progress", Description: "Reports progress three times"},
		func(ctx context.Context, req *mcp.Request, _ none) (string, error) {
			total := 100.0
			for _, done := range []float64{0, 50, 100} {
				req.Progress(ctx, mcp.ProgressParams{Progress: done, Total: &total})
				if err := pause(ctx, 50*time.Millisecond); err != nil {
					return "", err
				}
			}
			return "Tool with progress executed successfully", nil
		})
	mcp.AddTool(s, mcp.Tool{Name: "test_reconnection", Description: "Lets go of the connection before it answers"},
		func(ctx context.Context, req *mcp.Request, _ none) (string, error) {
			req.CloseStream(500 * time.Millisecond)
			if err := pause(ctx, 100*time.Millisecond); err != nil {
				return "", err
			}
			return "Reconnection test completed", nil
		})
	mcp.AddTool(s, mcp.Tool{Name: "test_logging_tool", Description: "Logs if it is asked to"},
		func(_ context.Context, req *mcp.Request, _ none) (string, error) {
			req.Log().Info("a message")
			return "logged", nil
		})
	addSchemaTools(s)
	addChangingTools(s)
}

func addSchemaTools(s *mcp.Server) {
	text := func(context.Context, *mcp.Request) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{mcp.Text("ok")}}, nil
	}
	s.AddTool(mcp.Tool{Name: "json_schema_2020_12_tool", Description: "Has a schema of many keywords", InputSchema: json.RawMessage(`{
		"$schema": "https://json-schema.org/draft/2020-12/schema",
		"type": "object",
		"$defs": {"address": {"$anchor": "addressDef", "type": "object", "properties": {"street": {"type": "string"}, "city": {"type": "string"}}}},
		"properties": {
			"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"},
			"contactMethod": {"type": "string", "enum": ["phone", "email"]}, "phone": {"type": "string"}, "email": {"type": "string"}
		},
		"allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
		"if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
		"then": {"required": ["phone"]},
		"else": {"required": ["email"]},
		"additionalProperties": false}`)}, text)
	s.AddTool(mcp.Tool{Name: "test_x_mcp_header", Description: "Has an argument that is sent in a header", InputSchema: json.RawMessage(
		`{"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}, "query": {"type": "string"}}, "required": ["region"]}`)}, text)
}

// addChangingTools adds the tools that change the lists, and leave them as
// they were.
func addChangingTools(s *mcp.Server) {
	var changes atomic.Int64
	mcp.AddTool(s, mcp.Tool{Name: "test_trigger_tool_change", Description: "Changes the list of tools"},
		func(context.Context, *mcp.Request, none) (string, error) {
			name := fmt.Sprintf("test_passing_tool_%d", changes.Add(1))
			add(s, name, "Is about to go", mcp.Text("gone"))
			s.RemoveTools(name)
			return "changed", nil
		})
	mcp.AddTool(s, mcp.Tool{Name: "test_trigger_prompt_change", Description: "Changes the list of prompts"},
		func(context.Context, *mcp.Request, none) (string, error) {
			name := fmt.Sprintf("test_passing_prompt_%d", changes.Add(1))
			s.AddPrompt(mcp.Prompt{Name: name, Description: "Is about to go"}, prompt(mcp.Text("gone")))
			s.RemovePrompts(name)
			return "changed", nil
		})
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
