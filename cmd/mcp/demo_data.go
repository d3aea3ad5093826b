package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"image"
	"image/color"
	"image/png"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"mcpkit/mcp"
)

const readme = `# demo

Tools that answer: echo, add and primes (structured), content (every kind),
fail, panic and die (the ways to fail), requests (what was asked so far),
lifespan (what is there only while it serves).
Tools that tell: countdown reports progress, wait waits to be cancelled, log
logs, touch changes this text, bonus changes the lists.
Tools that ask: ask (a form), pay and login (a page), survey (two at once), book (one
after the other), sample and agent (the model), roots.

Resources: this text, a picture (demo://logo), a clock that changes each second
(demo://clock), demo://users/{id}/profile for any number as id, and files
(file:///demo/hello.txt).
Prompts: greet, translate (with completion by context), and review with this
text in it. Method of its own: demo/reverse, {"text": "…"}.
`

const profileTemplate = "demo://users/{id}/profile"

// addResources registers a text, a blob and a template.
func (s *demoApp) addResources() {
	logo := demoLogo()
	size := int64(len(logo))
	s.AddResource(mcp.Resource{URI: "demo://readme", Name: "readme", Description: "What this server shows", MIMEType: "text/markdown"},
		func(ctx context.Context, req *mcp.Request) (*mcp.ReadResourceResult, error) {
			r := contents(mcp.ResourceContents{MIMEType: "text/markdown", Text: readme})
			r.CacheHints = mcp.CacheHints{TTLMs: time.Minute.Milliseconds(), CacheScope: "public"}
			return r, nil
		})
	s.AddResource(mcp.Resource{URI: "demo://logo", Name: "logo", Description: "A small picture", MIMEType: "image/png", Size: &size},
		func(ctx context.Context, req *mcp.Request) (*mcp.ReadResourceResult, error) {
			return contents(mcp.ResourceContents{MIMEType: "image/png", Blob: logo}), nil
		})
	s.AddResource(mcp.Resource{URI: "demo://clock", Name: "clock", Description: "The time of day, by the second", MIMEType: "text/plain"},
		func(ctx context.Context, req *mcp.Request) (*mcp.ReadResourceResult, error) {
			return contents(mcp.ResourceContents{MIMEType: "text/plain", Text: time.Now().Format(time.TimeOnly)}), nil
		})
	s.AddResourceTemplate(mcp.ResourceTemplate{URITemplate: profileTemplate, Name: "profile", Description: "A user", MIMEType: "text/plain"},
		func(ctx context.Context, req *mcp.Request) (*mcp.ReadResourceResult, error) {
			id := req.Vars["id"]
			if id == "" || strings.Trim(id, "0123456789") != "" {
				return nil, mcp.ResourceNotFound(req.Name)
			}
			return contents(mcp.ResourceContents{MIMEType: "text/plain", Text: "The profile of user " + id}), nil
		})
	s.AddResourceTemplate(mcp.ResourceTemplate{URITemplate: filesURI + "{+path}", Name: "files", Description: "The demo's files: hello.txt, logo.png"},
		func(ctx context.Context, req *mcp.Request) (*mcp.ReadResourceResult, error) {
			if l, ok := ctx.Value(lifeKey{}).(*life); ok {
				return l.files(ctx, req)
			}
			return nil, mcp.ResourceNotFound(req.Name)
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

// demoIcon is the picture as an address.
func demoIcon() string {
	return "data:image/png;base64," + base64.StdEncoding.EncodeToString(demoLogo())
}

// demoSound returns an eighth of a second of a tone as a WAV file: one channel
// of 8000 samples a second, one byte each.
func demoSound() []byte {
	const rate, n = 8000, 1000
	b := append([]byte("RIFF"), 0, 0, 0, 0)
	binary.LittleEndian.PutUint32(b[4:], 36+n)
	b = append(b, "WAVEfmt "...)
	b = binary.LittleEndian.AppendUint32(b, 16)
	for _, v := range []uint16{1, 1, rate, 0, rate, 0, 1, 8} { // PCM, mono; the rates have 4 bytes
		b = binary.LittleEndian.AppendUint16(b, v)
	}
	b = binary.LittleEndian.AppendUint32(append(b, "data"...), n)
	for i := range n {
		b = append(b, byte(128+64*math.Sin(2*math.Pi*440*float64(i)/rate)))
	}
	return b
}

// addPrompts registers a prompt with arguments and one with a resource in it.
func (s *demoApp) addPrompts() {
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
	s.AddPrompt(mcp.Prompt{Name: "translate", Description: "The greeting in another language", Arguments: []mcp.PromptArgument{
		{Name: "language", Required: true}, {Name: "dialect"},
	}}, func(ctx context.Context, req *mcp.Request) (*mcp.GetPromptResult, error) {
		text := "Say hello in " + strings.TrimSpace(req.Vars["dialect"]+" "+req.Vars["language"]) + "."
		return &mcp.GetPromptResult{Messages: []mcp.PromptMessage{{Role: "user", Content: mcp.Text(text)}}}, nil
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

var styles = []string{"formal", "friendly", "funny"}

// dialects are the languages of translate, and what each has.
var dialects = map[string][]string{
	"English": {"American", "Australian", "British"},
	"German":  {"Austrian", "Low", "Swiss"},
}

// completeDemo proposes what arguments of the prompts and of the template can
// be. The dialect depends on the language, which comes as context.
func completeDemo(ctx context.Context, req *mcp.Request, p *mcp.CompleteParams) (*mcp.CompleteResult, error) {
	var all []string
	switch p.Ref.Name + p.Ref.URI + " " + p.Argument.Name {
	case "greet style":
		all = styles
	case "translate language":
		all = slices.Sorted(maps.Keys(dialects))
	case "translate dialect":
		if p.Context != nil {
			all = dialects[p.Context.Arguments["language"]]
		}
	case profileTemplate + " id":
		for id := 1; id <= 250; id++ {
			all = append(all, strconv.Itoa(id))
		}
	}
	r := &mcp.CompleteResult{}
	for _, v := range all {
		if strings.HasPrefix(v, p.Argument.Value) {
			r.Completion.Values = append(r.Completion.Values, v)
		}
	}
	return r, nil
}
