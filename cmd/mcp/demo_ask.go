package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"mcpkit/mcp"
)

type askArgs struct {
	Question string `json:"question" jsonschema:"what to ask the user,default=Who are you?"`
}

type payArgs struct {
	Amount int `json:"amount" jsonschema:"in whole coins,minimum=1,default=5"`
}

const askForm = `{"type": "object", "required": ["name", "agree"], "properties": {
	"name": {"type": "string", "title": "Your name", "minLength": 1},
	"agree": {"type": "boolean", "title": "Do you agree?"}}}`

// addAskingTools registers the tools that ask the client for something. They
// run again from the top when a modern client brings its answer.
func (s *demoApp) addAskingTools() {
	mcp.AddTool(s.Server, mcp.Tool{Name: "ask", Description: "Asks the user (elicitation) and tells what came back"},
		func(ctx context.Context, req *mcp.Request, in askArgs) (string, error) {
			answer, err := req.Elicit(ctx, "who", &mcp.ElicitParams{Message: in.Question, RequestedSchema: []byte(askForm)})
			if err != nil {
				return "", err
			}
			return strings.TrimSpace(answer.Action + " " + string(answer.Content)), nil
		})
	mcp.AddTool(s.Server, mcp.Tool{Name: "pay", Description: "Asks the user to open a page (elicitation by URL)"}, pay)
	mcp.AddTool(s.Server, mcp.Tool{Name: "login", Description: "Does not work before the user has opened a page"}, s.login)
	mcp.AddTool(s.Server, mcp.Tool{Name: "survey", Description: "Asks the user two things at once"}, survey)
	mcp.AddTool(s.Server, mcp.Tool{Name: "book", Description: "Asks the user one thing after the other, and keeps a seat meanwhile"}, s.book)
	mcp.AddTool(s.Server, mcp.Tool{Name: "sample", Description: "Asks the client's model (sampling) and tells what it said"}, sample)
	mcp.AddTool(s.Server, mcp.Tool{Name: "agent", Description: "Lets the client's model use a tool of the server (sampling with tools)"}, agent)
	mcp.AddTool(s.Server, mcp.Tool{Name: "roots", Description: "Lists the folders that the client lets the server work in"},
		func(ctx context.Context, req *mcp.Request, in noArgs) (string, error) {
			roots, err := req.Roots(ctx, "where")
			var uris []string
			for _, r := range roots {
				uris = append(uris, r.URI)
			}
			return strings.Join(uris, "\n"), err
		})
}

// pay sends the user to a page that neither the client nor its model sees.
func pay(ctx context.Context, req *mcp.Request, in payArgs) (string, error) {
	page := &mcp.ElicitParams{
		Mode: "url", Message: fmt.Sprintf("Please pay %d coins", in.Amount), URL: fmt.Sprintf("https://pay.example/order?coins=%d", in.Amount),
		ElicitationID: rand.Text(),
	}
	answer, err := req.Elicit(ctx, "page", page)
	if err != nil {
		return "", err
	}
	if answer.Action != "accept" {
		return "nothing was paid: " + answer.Action, nil
	}
	// No page tells the demo that it is done with; a server with one would hear
	// of it. The notification is part of 2025-11-25 only.
	if req.Version() == mcp.Version20251125 {
		if err := req.Session().ElicitationComplete(ctx, page.ElicitationID); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("%d coins were paid, if the page says so", in.Amount), nil
}

// login cannot work before the user has been to a page. At 2025-11-25 there is
// an error to say so, and the client comes again when it hears that the page
// is done with. The demo has no page, and says so soon after.
func (s *demoApp) login(ctx context.Context, req *mcp.Request, in noArgs) (string, error) {
	page := mcp.ElicitParams{Mode: "url", Message: "Please log in", URL: "https://login.example/", ElicitationID: rand.Text()}
	if req.Version() == mcp.Version20251125 {
		if s.visited.Load() {
			return "logged in", nil
		}
		go s.visit(req.Session(), page.ElicitationID)
		return "", mcp.URLElicitationRequired(page)
	}
	answer, err := req.Elicit(ctx, "login", &page)
	if err != nil {
		return "", err
	}
	if answer.Action != "accept" {
		return "", errors.New("nobody logged in: " + answer.Action)
	}
	return "logged in", nil
}

// visit is the user at the page: the client can be told of its end once it has
// been told of the page.
func (s *demoApp) visit(session *mcp.ServerSession, id string) {
	for range 100 {
		time.Sleep(20 * time.Millisecond)
		s.visited.Store(true)
		if session.ElicitationComplete(context.Background(), id) == nil {
			return
		}
	}
}

// formQuestion is a question for [mcp.Request.Ask] with one field of text.
func formQuestion(message, field string) mcp.InputRequest {
	schema := fmt.Sprintf(`{"type": "object", "required": [%q], "properties": {%q: {"type": "string"}}}`, field, field)
	params, err := json.Marshal(mcp.ElicitParams{Message: message, RequestedSchema: []byte(schema)})
	if err != nil {
		panic(err) // cannot be: the schema is JSON
	}
	return mcp.InputRequest{Method: "elicitation/create", Params: params}
}

func survey(ctx context.Context, req *mcp.Request, in noArgs) (string, error) {
	answers, err := req.Ask(ctx, mcp.InputRequests{
		"colour": formQuestion("Which colour do you like?", "colour"),
		"animal": formQuestion("Which animal do you like?", "animal"),
	})
	if err != nil {
		return "", err
	}
	var said []string
	for _, key := range []string{"colour", "animal"} {
		var answer mcp.ElicitResult
		if err := json.Unmarshal(answers[key], &answer); err != nil {
			return "", mcp.Errorf(mcp.CodeInvalidParams, "the answer to %s: %v", key, err)
		}
		said = append(said, strings.TrimSpace(answer.Action+" "+string(answer.Content)))
	}
	return strings.Join(said, "; "), nil
}

// book takes a seat once, however often it runs: it is kept in the state that
// goes from round to round.
func (s *demoApp) book(ctx context.Context, req *mcp.Request, in noArgs) (string, error) {
	var seat int64
	if state := req.State(); state != nil {
		if err := json.Unmarshal(state, &seat); err != nil {
			return "", err
		}
	} else {
		seat = s.seats.Add(1)
		if err := req.SetState(seat); err != nil {
			return "", err
		}
	}
	for _, q := range []struct{ key, message string }{{"day", "Which day?"}, {"sure", fmt.Sprintf("Seat %d is free. Are you sure?", seat)}} {
		answer, err := req.Elicit(ctx, q.key, &mcp.ElicitParams{Message: q.message, RequestedSchema: []byte(`{"type": "object", "properties": {"text": {"type": "string"}}}`)})
		if err != nil {
			return "", err
		}
		if answer.Action != "accept" {
			return fmt.Sprintf("seat %d was given back", seat), nil
		}
	}
	return fmt.Sprintf("seat %d was booked", seat), nil
}

type sampleArgs struct {
	Prompt string `json:"prompt" jsonschema:"what to ask the model"`
}

func sample(ctx context.Context, req *mcp.Request, in sampleArgs) (string, error) {
	answer, err := req.Sample(ctx, "say", &mcp.CreateMessageParams{
		Messages:  []mcp.SamplingMessage{{Role: "user", Content: []mcp.Content{mcp.Text(in.Prompt)}}},
		MaxTokens: 200,
	})
	if err != nil {
		return "", err
	}
	return texts(answer.Content), nil
}

func texts(content []mcp.Content) string {
	var text []string
	for _, c := range content {
		if c.Type == "text" {
			text = append(text, c.Text)
		}
	}
	return strings.Join(text, "\n")
}

// agent asks the model until it no longer wants to use the tool, which adds
// numbers.
func agent(ctx context.Context, req *mcp.Request, in sampleArgs) (string, error) {
	tool := mcp.Tool{Name: "add", InputSchema: []byte(`{"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "number"}}, "required": ["a", "b"]}`)}
	messages := []mcp.SamplingMessage{{Role: "user", Content: []mcp.Content{mcp.Text(in.Prompt)}}}
	for turn := range 5 {
		answer, err := req.Sample(ctx, fmt.Sprintf("turn-%d", turn), &mcp.CreateMessageParams{Messages: messages, MaxTokens: 200, Tools: []mcp.Tool{tool}})
		if err != nil {
			return "", err
		}
		var results []mcp.Content
		for _, c := range answer.Content {
			if c.Type == "tool_use" {
				results = append(results, useAdd(c))
			}
		}
		if results == nil {
			return texts(answer.Content), nil
		}
		messages = append(messages, mcp.SamplingMessage{Role: answer.Role, Content: answer.Content}, mcp.SamplingMessage{Role: "user", Content: results})
	}
	return "", errors.New("the model does not come to an end")
}

// useAdd does what the model asked for.
func useAdd(use mcp.Content) mcp.Content {
	var in addArgs
	result := mcp.Content{Type: "tool_result", ToolUseID: use.ID}
	if err := json.Unmarshal(use.Input, &in); err != nil {
		result.IsError, result.Content = true, []mcp.Content{mcp.Text(err.Error())}
		return result
	}
	result.Content = []mcp.Content{mcp.Text(fmt.Sprint(in.A + in.B))}
	return result
}
