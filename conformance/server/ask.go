package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"mcpkit/mcp"
)

var (
	userName = &mcp.ElicitParams{Message: "What is your name?", RequestedSchema: json.RawMessage(
		`{"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}`)}
	confirmation = &mcp.ElicitParams{Message: "Please confirm", RequestedSchema: json.RawMessage(
		`{"type": "object", "properties": {"confirmed": {"type": "boolean"}}}`)}
	capitalOfFrance = &mcp.CreateMessageParams{MaxTokens: 100, Messages: []mcp.SamplingMessage{
		{Role: "user", Content: []mcp.Content{mcp.Text("What is the capital of France?")}}}}
)

// asks registers a tool that asks the user a form.
func asks[In any](s *mcp.Server, name, description string, form func(In) *mcp.ElicitParams) {
	mcp.AddTool(s, mcp.Tool{Name: name, Description: description},
		func(ctx context.Context, req *mcp.Request, in In) (string, error) {
			answer, err := req.Elicit(ctx, "form", form(in))
			if err != nil {
				return "", err
			}
			return fmt.Sprintf("Elicitation completed: action=%s, content=%s", answer.Action, answer.Content), nil
		})
}

func addAskingTools(s *mcp.Server) {
	type question struct {
		Message string `json:"message"`
	}
	asks(s, "test_elicitation", "Asks the user", func(in question) *mcp.ElicitParams {
		return &mcp.ElicitParams{Message: in.Message, RequestedSchema: json.RawMessage(
			`{"type": "object", "properties": {"username": {"type": "string"}, "email": {"type": "string"}}, "required": ["username", "email"]}`)}
	})
	asks(s, "test_elicitation_sep1034_defaults", "Asks with defaults", func(none) *mcp.ElicitParams {
		return &mcp.ElicitParams{Message: "Please review the defaults", RequestedSchema: json.RawMessage(`{"type": "object", "properties": {
			"name": {"type": "string", "default": "John Doe"}, "age": {"type": "integer", "default": 30},
			"score": {"type": "number", "default": 95.5},
			"status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
			"verified": {"type": "boolean", "default": true}}}`)}
	})
	asks(s, "test_elicitation_sep1330_enums", "Asks for choices", func(none) *mcp.ElicitParams {
		return &mcp.ElicitParams{Message: "Please choose", RequestedSchema: json.RawMessage(`{"type": "object", "properties": {
			"untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
			"titledSingle": {"type": "string", "oneOf": [{"const": "value1", "title": "First"}, {"const": "value2", "title": "Second"}]},
			"legacyEnum": {"type": "string", "enum": ["opt1", "opt2"], "enumNames": ["Option One", "Option Two"]},
			"untitledMulti": {"type": "array", "items": {"type": "string", "enum": ["option1", "option2", "option3"]}},
			"titledMulti": {"type": "array", "items": {"anyOf": [{"const": "value1", "title": "First"}, {"const": "value2", "title": "Second"}]}}}}`)}
	})
	asks(s, "test_streaming_elicitation", "Asks without a stream", func(none) *mcp.ElicitParams { return userName })
	type prompted struct {
		Prompt string `json:"prompt"`
	}
	mcp.AddTool(s, mcp.Tool{Name: "test_sampling", Description: "Asks the client's model"},
		func(ctx context.Context, req *mcp.Request, in prompted) (string, error) {
			r, err := req.Sample(ctx, "model", &mcp.CreateMessageParams{MaxTokens: 100, Messages: []mcp.SamplingMessage{
				{Role: "user", Content: []mcp.Content{mcp.Text(in.Prompt)}}}})
			if err != nil {
				return "", err
			}
			return "LLM response: " + r.Content[0].Text, nil
		})
	mcp.AddTool(s, mcp.Tool{Name: "test_missing_capability", Description: "Needs a client with a model"},
		func(_ context.Context, req *mcp.Request, _ none) (string, error) {
			if err := req.RequireCapability(mcp.ClientCapabilities{Sampling: &mcp.SamplingCapability{}}); err != nil {
				return "", err
			}
			return "the client can sample", nil
		})
}

// elicited returns a question to the user as one of several.
func elicited(p *mcp.ElicitParams) mcp.InputRequest { return question("elicitation/create", p) }

func question(method string, params any) mcp.InputRequest {
	raw, err := json.Marshal(params)
	if err != nil {
		panic(err)
	}
	return mcp.InputRequest{Method: method, Params: raw}
}

// addRounds adds the tools that need more than one round at 2026-07-28.
func addRounds(s *mcp.Server) {
	round := func(name, description string, h func(ctx context.Context, req *mcp.Request) (string, error)) {
		mcp.AddTool(s, mcp.Tool{Name: "test_input_required_result_" + name, Description: description},
			func(ctx context.Context, req *mcp.Request, _ none) (string, error) { return h(ctx, req) })
	}
	hello := func(key string, form *mcp.ElicitParams) func(ctx context.Context, req *mcp.Request) (string, error) {
		return func(ctx context.Context, req *mcp.Request) (string, error) {
			answer, err := req.Elicit(ctx, key, form)
			if err != nil {
				return "", err
			}
			return "state-ok: " + string(answer.Content), nil
		}
	}
	round("elicitation", "Asks the user", hello("user_name", userName))
	round("request_state", "Asks the user and keeps a state", hello("confirm", confirmation))
	round("tampered_state", "Asks the user and trusts no state", hello("confirm", confirmation))
	round("sampling", "Asks the client's model", func(ctx context.Context, req *mcp.Request) (string, error) {
		r, err := req.Sample(ctx, "capital", capitalOfFrance)
		if err != nil {
			return "", err
		}
		return r.Content[0].Text, nil
	})
	round("list_roots", "Asks for the roots", func(ctx context.Context, req *mcp.Request) (string, error) {
		roots, err := req.Roots(ctx, "roots")
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("%d roots", len(roots)), nil
	})
	round("multiple_inputs", "Asks three things at once", func(ctx context.Context, req *mcp.Request) (string, error) {
		answers, err := req.Ask(ctx, mcp.InputRequests{
			"user_name": elicited(userName),
			"greeting":  question("sampling/createMessage", capitalOfFrance),
			"roots":     {Method: "roots/list"},
		})
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("%d answers", len(answers)), nil
	})
	round("multi_round", "Asks twice", func(ctx context.Context, req *mcp.Request) (string, error) {
		if _, err := req.Elicit(ctx, "step1", userName); err != nil {
			return "", err
		}
		if _, err := req.Elicit(ctx, "step2", confirmation); err != nil {
			return "", err
		}
		return "both steps done", nil
	})
	round("capabilities", "Asks what the client can answer", func(ctx context.Context, req *mcp.Request) (string, error) {
		questions := mcp.InputRequests{}
		caps := req.Capabilities()
		if caps.Elicitation != nil {
			questions["user_name"] = elicited(userName)
		}
		if caps.Sampling != nil {
			questions["capital"] = question("sampling/createMessage", capitalOfFrance)
		}
		if len(questions) == 0 {
			return "", errors.New("the client answers nothing")
		}
		if _, err := req.Ask(ctx, questions); err != nil {
			return "", err
		}
		return "asked", nil
	})
}
