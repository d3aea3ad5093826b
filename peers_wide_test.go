//go:build unix

package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// wide is a server of ours, this test binary started as a child, with what mcp
// demo has no tool for: pages, lists that change, a page for the user, several
// rounds of questions, and results of many shapes.

const wideMode = "peers-wide"

var _ = addMode(wideMode, func() {
	if err := wideServer().Run(context.Background(), Stdio()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
})

type weighArgs struct {
	Parts []string `json:"parts"`
}

type weighResult struct {
	Total  int64              `json:"total"`
	Unit   string             `json:"unit" jsonschema:"enum=g|kg"`
	Parts  []weighPart        `json:"parts"`
	Shares map[string]float64 `json:"shares"`
	Note   *string            `json:"note,omitempty"`
	Empty  []weighPart        `json:"empty"`
}

type weighPart struct {
	Name  string `json:"name"`
	Grams int    `json:"grams" jsonschema:"minimum=0"`
}

func weigh(_ context.Context, _ *Request, in weighArgs) (weighResult, error) {
	out := weighResult{Unit: "g", Shares: map[string]float64{}}
	for _, part := range in.Parts {
		out.Total += int64(len(part))
		out.Parts = append(out.Parts, weighPart{part, len(part)})
	}
	for _, part := range out.Parts {
		out.Shares[part.Name] = float64(part.Grams) / float64(out.Total)
	}
	return out, nil
}

func wideServer() *Server {
	s := NewServer(Implementation{Name: "wide", Version: "1.0.0"}, &ServerOptions{PageSize: 2})
	read := func(_ context.Context, req *Request) (*ReadResourceResult, error) {
		return &ReadResourceResult{Contents: []ResourceContents{{URI: req.Name, Text: req.Name}}}, nil
	}
	for _, name := range []string{"a", "b", "c"} {
		s.AddResource(Resource{URI: "wide://" + name, Name: name}, read)
	}
	prompt := func(context.Context, *Request) (*GetPromptResult, error) {
		return &GetPromptResult{Messages: []PromptMessage{{Role: "user", Content: Text("hello")}}}, nil
	}
	s.AddPrompt(Prompt{Name: "hello"}, prompt)
	AddTool(s, Tool{Name: "weigh"}, weigh)
	toggled := false
	AddTool(s, Tool{Name: "toggle"}, func(context.Context, *Request, struct{}) (string, error) {
		if toggled = !toggled; !toggled {
			s.RemoveTools("extra")
			s.RemovePrompts("extra")
			s.RemoveResources("wide://extra")
			return "away", nil
		}
		AddTool(s, Tool{Name: "extra"}, func(context.Context, *Request, struct{}) (string, error) { return "extra", nil })
		s.AddPrompt(Prompt{Name: "extra"}, prompt)
		s.AddResource(Resource{URI: "wide://extra", Name: "extra"}, read)
		return "there", nil
	})
	AddTool(s, Tool{Name: "open"}, func(ctx context.Context, req *Request, _ struct{}) (string, error) {
		page := &ElicitParams{Mode: "url", Message: "Pay here", URL: "https://example.com/pay?id=7&ok", ElicitationID: "pay-7"}
		answer, err := req.Elicit(ctx, "pay", page)
		if err != nil {
			return "", err
		}
		return answer.Action, nil
	})
	AddTool(s, Tool{Name: "interview"}, interview)
	return s
}

// interview asks in two rounds, in the second two things at once.
func interview(ctx context.Context, req *Request, _ struct{}) (string, error) {
	form := func(message string) *ElicitParams {
		schema := `{"type":"object","properties":{"name":{"type":"string"},"agree":{"type":"boolean","default":true}},"required":["name"]}`
		return &ElicitParams{Message: message, RequestedSchema: []byte(schema)}
	}
	first, err := req.Elicit(ctx, "name", form("Your name?"))
	if err != nil {
		return "", err
	}
	questions := InputRequests{}
	for key, q := range map[string]struct {
		method string
		params any
	}{
		"mood": {methodElicit, form("Your mood?")},
		"joke": {methodCreateMessage, &CreateMessageParams{MaxTokens: 20, Messages: []SamplingMessage{{Role: "user", Content: []Content{Text("a joke")}}}}},
	} {
		params, err := json.Marshal(q.params)
		if err != nil {
			return "", err
		}
		questions[key] = InputRequest{Method: q.method, Params: params}
	}
	answers, err := req.Ask(ctx, questions)
	if err != nil {
		return "", err
	}
	said := []string{string(first.Content)}
	for _, key := range []string{"joke", "mood"} {
		said = append(said, string(answers[key]))
	}
	return strings.Join(said, "\n"), nil
}
