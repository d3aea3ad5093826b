package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"log/slog"
	"strings"
	"time"

	"mcpkit/mcp"
)

// demo serves one client over standard input and output.
func demo(ctx context.Context, stderr io.Writer) error {
	logger := slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	return demoServer(logger).Run(ctx, mcp.Stdio())
}

// demoServer returns a server that shows every feature once.
func demoServer(logger *slog.Logger) *mcp.Server {
	s := mcp.NewServer(mcp.Implementation{Name: "demo", Title: "Demo", Version: version}, &mcp.ServerOptions{
		Instructions: "A server to try things with. Each tool shows one feature of the protocol; demo://readme says which.",
		Logger:       logger,
		Complete:     completeDemo,
	})
	addPlainTools(s)
	addAskingTools(s)
	addResources(s)
	addPrompts(s)
	return s
}

type echoArgs struct {
	Text string `json:"text" jsonschema:"what to say"`
}

type addArgs struct {
	A float64 `json:"a"`
	B float64 `json:"b"`
}

type addResult struct {
	Sum float64 `json:"sum"`
}

type countdownArgs struct {
	From    int `json:"from" jsonschema:"where to start,minimum=0,maximum=1000"`
	DelayMS int `json:"delayMs" jsonschema:"milliseconds between two counts,minimum=0,maximum=10000,default=0"`
}

type logArgs struct {
	Level   string `json:"level" jsonschema:"enum=debug|info|notice|warning|error|critical|alert|emergency"`
	Message string `json:"message"`
}

// addPlainTools registers the tools that need nothing of the client.
func addPlainTools(s *mcp.Server) {
	yes := true
	readOnly := &mcp.ToolAnnotations{ReadOnlyHint: &yes}
	mcp.AddTool(s, mcp.Tool{Name: "echo", Description: "Says the text again", Annotations: readOnly},
		func(ctx context.Context, req *mcp.Request, in echoArgs) (string, error) {
			return in.Text, nil
		})
	mcp.AddTool(s, mcp.Tool{Name: "add", Description: "Adds two numbers: a structured result", Annotations: readOnly},
		func(ctx context.Context, req *mcp.Request, in addArgs) (addResult, error) {
			return addResult{in.A + in.B}, nil
		})
	mcp.AddTool(s, mcp.Tool{Name: "countdown", Description: "Counts down to 0 and reports progress"}, countdown)
	mcp.AddTool(s, mcp.Tool{Name: "wait", Description: "Waits until it is cancelled"},
		func(ctx context.Context, req *mcp.Request, in struct{}) (string, error) {
			<-ctx.Done()
			return "", ctx.Err()
		})
	mcp.AddTool(s, mcp.Tool{Name: "fail", Description: "Fails: an error for the model"},
		func(ctx context.Context, req *mcp.Request, in struct{}) (string, error) {
			return "", errors.New("this tool always fails")
		})
	mcp.AddTool(s, mcp.Tool{Name: "panic", Description: "Panics: an error of the protocol"},
		func(ctx context.Context, req *mcp.Request, in struct{}) (string, error) {
			panic("the panic tool was called")
		})
	mcp.AddTool(s, mcp.Tool{Name: "log", Description: "Sends a log message to the client"},
		func(ctx context.Context, req *mcp.Request, in logArgs) (string, error) {
			req.Log().Log(ctx, logLevels[in.Level], in.Message)
			return "logged at " + in.Level, nil
		})
	mcp.AddTool(s, mcp.Tool{Name: "touch", Description: "Tells clients that listen that demo://readme has changed"},
		func(ctx context.Context, req *mcp.Request, in struct{}) (string, error) {
			s.ResourceUpdated("demo://readme")
			return "demo://readme was touched", nil
		})
}

// logLevels are the slog levels that stand for the protocol's.
var logLevels = map[string]slog.Level{
	"debug": slog.LevelDebug, "info": slog.LevelInfo, "notice": slog.LevelInfo + 2, "warning": slog.LevelWarn,
	"error": slog.LevelError, "critical": slog.LevelError + 4, "alert": slog.LevelError + 8, "emergency": slog.LevelError + 12,
}

func countdown(ctx context.Context, req *mcp.Request, in countdownArgs) (string, error) {
	total := float64(in.From)
	for n := 1; n <= in.From; n++ {
		p := mcp.ProgressParams{Progress: float64(n), Total: &total, Message: fmt.Sprintf("%d to go", in.From-n)}
		if err := req.Progress(ctx, p); err != nil {
			return "", err
		}
		select {
		case <-time.After(time.Duration(in.DelayMS) * time.Millisecond):
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
	return "lift-off", nil
}

type askArgs struct {
	Question string `json:"question" jsonschema:"what to ask the user,default=Who are you?"`
}

type sampleArgs struct {
	Prompt string `json:"prompt" jsonschema:"what to ask the model"`
}

const askForm = `{"type": "object", "required": ["name", "agree"], "properties": {
	"name": {"type": "string", "title": "Your name", "minLength": 1},
	"agree": {"type": "boolean", "title": "Do you agree?"}}}`

// addAskingTools registers the tools that ask the client for something. They
// run again from the top when a modern client brings its answer.
func addAskingTools(s *mcp.Server) {
	mcp.AddTool(s, mcp.Tool{Name: "ask", Description: "Asks the user (elicitation) and tells what came back"},
		func(ctx context.Context, req *mcp.Request, in askArgs) (string, error) {
			answer, err := req.Elicit(ctx, "who", &mcp.ElicitParams{Message: in.Question, RequestedSchema: []byte(askForm)})
			if err != nil {
				return "", err
			}
			return strings.TrimSpace(answer.Action + " " + string(answer.Content)), nil
		})
	mcp.AddTool(s, mcp.Tool{Name: "sample", Description: "Asks the client's model (sampling) and tells what it said"},
		func(ctx context.Context, req *mcp.Request, in sampleArgs) (string, error) {
			answer, err := req.Sample(ctx, "say", &mcp.CreateMessageParams{
				Messages:  []mcp.SamplingMessage{{Role: "user", Content: []mcp.Content{mcp.Text(in.Prompt)}}},
				MaxTokens: 200,
			})
			if err != nil {
				return "", err
			}
			var text []string
			for _, c := range answer.Content {
				text = append(text, c.Text)
			}
			return strings.Join(text, "\n"), nil
		})
	mcp.AddTool(s, mcp.Tool{Name: "roots", Description: "Lists the folders that the client lets the server work in"},
		func(ctx context.Context, req *mcp.Request, in struct{}) (string, error) {
			roots, err := req.Roots(ctx, "where")
			var uris []string
			for _, r := range roots {
				uris = append(uris, r.URI)
			}
			return strings.Join(uris, "\n"), err
		})
}

const readme = `# demo

Tools: echo and add answer; countdown reports progress; wait waits to be
cancelled; ask, sample and roots ask the client; fail and panic fail in the two
ways there are; log sends a log message; touch makes this text one that changed.

Resources: this text, a picture (demo://logo), and demo://users/{id}/profile
for any number as id. Prompts: greet, and review with this text in it.
`

const profileTemplate = "demo://users/{id}/profile"

// addResources registers a text, a blob and a template.
func addResources(s *mcp.Server) {
	logo := demoLogo()
	size := int64(len(logo))
	s.AddResource(mcp.Resource{URI: "demo://readme", Name: "readme", Description: "What this server shows", MIMEType: "text/markdown"},
		func(ctx context.Context, req *mcp.Request) (*mcp.ReadResourceResult, error) {
			return contents(mcp.ResourceContents{MIMEType: "text/markdown", Text: readme}), nil
		})
	s.AddResource(mcp.Resource{URI: "demo://logo", Name: "logo", Description: "A small picture", MIMEType: "image/png", Size: &size},
		func(ctx context.Context, req *mcp.Request) (*mcp.ReadResourceResult, error) {
			return contents(mcp.ResourceContents{MIMEType: "image/png", Blob: logo}), nil
		})
	s.AddResourceTemplate(mcp.ResourceTemplate{URITemplate: profileTemplate, Name: "profile", Description: "A user", MIMEType: "text/plain"},
		func(ctx context.Context, req *mcp.Request) (*mcp.ReadResourceResult, error) {
			id := req.Vars["id"]
			if id == "" || strings.Trim(id, "0123456789") != "" {
				return nil, mcp.ResourceNotFound(req.Name)
			}
			return contents(mcp.ResourceContents{MIMEType: "text/plain", Text: "The profile of user " + id}), nil
		})
}

func contents(c mcp.ResourceContents) *mcp.ReadResourceResult {
	return &mcp.ReadResourceResult{Contents: []mcp.ResourceContents{c}}
}

// demoLogo draws a disc on a square and returns it as a PNG file.
func demoLogo() []byte {
	const size = 16
	img := image.NewPaletted(image.Rect(0, 0, size, size), color.Palette{color.White, color.RGBA{0, 90, 160, 255}})
	for y := range size {
		for x := range size {
			if dx, dy := 2*x-size+1, 2*y-size+1; dx*dx+dy*dy < size*size-size {
				img.SetColorIndex(x, y, 1)
			}
		}
	}
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		panic(err) // cannot be: the image is valid and memory does not fail
	}
	return b.Bytes()
}

// addPrompts registers a prompt with arguments and one with a resource in it.
func addPrompts(s *mcp.Server) {
	s.AddPrompt(mcp.Prompt{Name: "greet", Description: "A greeting", Arguments: []mcp.PromptArgument{
		{Name: "name", Description: "who is greeted", Required: true},
		{Name: "style", Description: strings.Join(styles, ", ")},
	}}, func(ctx context.Context, req *mcp.Request) (*mcp.GetPromptResult, error) {
		text := "Greet " + req.Vars["name"]
		if style := req.Vars["style"]; style != "" {
			text += " in a " + style + " way"
		}
		return &mcp.GetPromptResult{
			Description: "A greeting for " + req.Vars["name"],
			Messages:    []mcp.PromptMessage{{Role: "user", Content: mcp.Text(text + ".")}},
		}, nil
	})
	s.AddPrompt(mcp.Prompt{Name: "review", Description: "A review of the readme"},
		func(ctx context.Context, req *mcp.Request) (*mcp.GetPromptResult, error) {
			r := mcp.ResourceContents{URI: "demo://readme", MIMEType: "text/markdown", Text: readme}
			return &mcp.GetPromptResult{Messages: []mcp.PromptMessage{
				{Role: "user", Content: mcp.Text("Review this text:")},
				{Role: "user", Content: mcp.EmbeddedResource(r)},
			}}, nil
		})
}

var (
	styles = []string{"formal", "friendly", "funny"}
	users  = []string{"1", "17", "42"}
)

// completeDemo proposes styles for greet and ids for the template.
func completeDemo(ctx context.Context, req *mcp.Request, p *mcp.CompleteParams) (*mcp.CompleteResult, error) {
	var all []string
	switch {
	case p.Ref.Type == "ref/prompt" && p.Ref.Name == "greet":
		if p.Argument.Name == "style" {
			all = styles
		}
	case p.Ref.Type == "ref/prompt" && p.Ref.Name == "review":
	case p.Ref.Type == "ref/resource" && p.Ref.URI == profileTemplate:
		if p.Argument.Name == "id" {
			all = users
		}
	default:
		return nil, mcp.Errorf(mcp.CodeInvalidParams, "there is no such prompt or template")
	}
	r := &mcp.CompleteResult{}
	for _, v := range all {
		if strings.HasPrefix(v, p.Argument.Value) {
			r.Completion.Values = append(r.Completion.Values, v)
		}
	}
	return r, nil
}
