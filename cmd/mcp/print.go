package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"unicode"

	"mcpkit/mcp"
)

// An output is where the program writes to; it can be shared by goroutines.
// On a terminal, control characters of what a server says are made visible:
// they could rewrite what the user has seen before.
type output struct {
	mu       sync.Mutex
	w        io.Writer
	terminal bool
	secrets  *strings.Replacer // nil without any
}

func newOutput(w io.Writer) *output { return &output{w: w, terminal: isTerminal(w)} }

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.terminal && o.secrets == nil {
		return o.w.Write(p)
	}
	text := string(p)
	if o.secrets != nil {
		text = o.secrets.Replace(text)
	}
	if o.terminal {
		text = visible(text)
	}
	_, err := io.WriteString(o.w, text)
	return len(p), err
}

// hide makes an output leave texts out that the user has given to the program
// in confidence: servers and libraries repeat them in errors.
func hide(w io.Writer, secrets []string) {
	o, ok := w.(*output)
	if !ok || len(secrets) == 0 {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.secrets = replacer(secrets)
}

// visible replaces control characters, and those that turn the direction of
// text, by escapes.
func visible(text string) string {
	var b strings.Builder
	for _, r := range strings.ReplaceAll(text, "\r\n", "\n") {
		if r != '\n' && r != '\t' && unicode.In(r, unicode.Cc, unicode.Bidi_Control) {
			quoted := fmt.Sprintf("%+q", r)
			b.WriteString(quoted[1 : len(quoted)-1])
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// isTerminal reports whether a stream is a person's. The null device is a
// device, too.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err != nil || !os.SameFile(info, null)
}

// indent prints text that may have several lines, or nothing if there is none.
func indent(w io.Writer, text string) {
	for line := range strings.Lines(strings.TrimSpace(text)) {
		fmt.Fprintln(w, strings.TrimRight("    "+line, " \r\n"))
	}
}

// heading prints a name, and the title if there is more in it.
func heading(w io.Writer, name, title string) {
	if title != "" && title != name {
		name += " (" + title + ")"
	}
	fmt.Fprintln(w, name)
}

// argument prints one argument of a tool or prompt.
func argument(w io.Writer, name, description string, notes ...string) {
	notes = slices.DeleteFunc(notes, func(s string) bool { return s == "" })
	if len(notes) > 0 {
		name += " (" + strings.Join(notes, ", ") + ")"
	}
	if description != "" {
		name += ": " + description
	}
	indent(w, "- "+name)
}

func printTool(w io.Writer, t *mcp.Tool) {
	heading(w, t.Name, t.Title)
	indent(w, t.Description)
	var schema struct{ Required []string }
	_ = json.Unmarshal(t.InputSchema, &schema) // one that is odd has nothing required
	for name, property := range properties(t.InputSchema) {
		required := ""
		if slices.Contains(schema.Required, name) {
			required = "required"
		}
		var p struct{ Description string }
		_ = json.Unmarshal(property, &p) // true and false are schemas as well
		argument(w, name, p.Description, typeOf(property), required)
	}
}

// properties are those of an object schema, in its order.
func properties(schema json.RawMessage) iter.Seq2[string, json.RawMessage] {
	return func(yield func(string, json.RawMessage) bool) {
		var s struct{ Properties json.RawMessage }
		if json.Unmarshal(schema, &s) != nil {
			return
		}
		d := json.NewDecoder(bytes.NewReader(s.Properties))
		if open, err := d.Token(); err != nil || open != json.Delim('{') {
			return
		}
		for d.More() {
			name, err := d.Token()
			var property json.RawMessage
			if err != nil || d.Decode(&property) != nil || !yield(name.(string), property) {
				return
			}
		}
	}
}

// typeOf is the type that a schema asks for; "" for none, or several.
func typeOf(schema json.RawMessage) string {
	var s struct{ Type string }
	if json.Unmarshal(schema, &s) != nil {
		return ""
	}
	return s.Type
}

func printResource(w io.Writer, r *mcp.Resource) {
	size := ""
	if r.Size != nil {
		size = fmt.Sprintf("%d bytes", *r.Size)
	}
	printSource(w, r.URI, r.Name, r.Title, r.Description, r.MIMEType, size)
}

func printTemplate(w io.Writer, t *mcp.ResourceTemplate) {
	printSource(w, t.URITemplate, t.Name, t.Title, t.Description, t.MIMEType)
}

func printSource(w io.Writer, uri, name, title, description string, notes ...string) {
	if title != "" {
		name = title
	}
	notes = slices.DeleteFunc(append([]string{name}, notes...), func(s string) bool { return s == "" })
	fmt.Fprintln(w, uri)
	indent(w, strings.Join(notes, ", "))
	indent(w, description)
}

func printPrompt(w io.Writer, p *mcp.Prompt) {
	heading(w, p.Name, p.Title)
	indent(w, p.Description)
	for _, a := range p.Arguments {
		required := ""
		if a.Required {
			required = "required"
		}
		argument(w, a.Name, a.Description, required)
	}
}

// printToolResult prints the content, and structured content that it does not
// repeat.
func printToolResult(w io.Writer, r *mcp.CallToolResult) {
	said := false
	for _, c := range r.Content {
		printContent(w, &c)
		said = said || c.Type == "text" && sameJSON([]byte(c.Text), r.StructuredContent)
	}
	if r.StructuredContent != nil && !said {
		var b bytes.Buffer
		_ = json.Indent(&b, r.StructuredContent, "", "  ") // was read as JSON
		fmt.Fprintln(w, b.String())
	}
}

func sameJSON(a, b []byte) bool {
	var left, right bytes.Buffer
	return json.Compact(&left, a) == nil && json.Compact(&right, b) == nil && bytes.Equal(left.Bytes(), right.Bytes())
}

// printContent prints one block of content, data by its size.
func printContent(w io.Writer, c *mcp.Content) {
	switch {
	case c.Type == "text":
		fmt.Fprintln(w, strings.TrimSuffix(c.Text, "\n"))
	case c.Type == "image" || c.Type == "audio":
		fmt.Fprintf(w, "[%s: %s, %d bytes]\n", c.Type, c.MIMEType, len(c.Data))
	case c.Type == "resource_link":
		fmt.Fprintf(w, "[link: %s, %s]\n", c.URI, c.Name)
	case c.Type == "resource" && c.Resource != nil && c.Resource.Blob != nil:
		fmt.Fprintf(w, "[resource: %s, %s, %d bytes]\n", c.Resource.URI, c.Resource.MIMEType, len(c.Resource.Blob))
	case c.Type == "resource" && c.Resource != nil:
		fmt.Fprintf(w, "[resource: %s, %s]\n%s\n", c.Resource.URI, c.Resource.MIMEType, strings.TrimSuffix(c.Resource.Text, "\n"))
	default:
		fmt.Fprintf(w, "[%s]\n", c.Type)
	}
}

// printContents prints a resource: into a file or pipe every byte as it is.
func printContents(w io.Writer, c *mcp.ResourceContents) {
	o, _ := w.(*output)
	switch terminal := o != nil && o.terminal; {
	case !terminal && c.Blob != nil:
		w.Write(c.Blob)
	case !terminal:
		io.WriteString(w, c.Text)
	case c.Blob != nil:
		fmt.Fprintf(w, "[%s: %s, %d bytes; redirect the output to keep them]\n", c.URI, c.MIMEType, len(c.Blob))
	default:
		fmt.Fprintln(w, strings.TrimSuffix(c.Text, "\n"))
	}
}

func printServer(w io.Writer, s *mcp.ServerInfo) {
	heading(w, s.Name+" "+s.Version, s.Title)
	fmt.Fprintf(w, "    protocol: %s\n", s.ProtocolVersion)
	var caps map[string]json.RawMessage
	if b, err := json.Marshal(s.Capabilities); err == nil {
		_ = json.Unmarshal(b, &caps) // was just made from a struct
	}
	fmt.Fprintf(w, "    capabilities: %s\n", strings.Join(slices.Sorted(maps.Keys(caps)), ", "))
	indent(w, s.Description)
	indent(w, s.WebsiteURL)
	indent(w, s.Instructions)
}

func printProgress(w io.Writer, p mcp.ProgressParams) {
	line := fmt.Sprintf("progress: %v", p.Progress)
	if p.Total != nil {
		line += fmt.Sprintf("/%v", *p.Total)
	}
	if p.Message != "" {
		line += " " + p.Message
	}
	fmt.Fprintln(w, line)
}

func printLog(w io.Writer, mark string, p *mcp.LogParams) {
	text := string(p.Data)
	var plain string
	if json.Unmarshal(p.Data, &plain) == nil {
		text = plain
	}
	from := ""
	if p.Logger != "" {
		from = " " + p.Logger
	}
	fmt.Fprintf(w, "%s%s%s: %s\n", mark, p.Level, from, text)
}
