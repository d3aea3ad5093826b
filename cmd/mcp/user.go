package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"sync"
	"unicode"

	"mcpkit/mcp"
)

// A user is who sits at the terminal, if it is one, and answers what servers
// ask.
type user struct {
	in  io.Reader
	out io.Writer

	mu    sync.Mutex // one question at a time
	lines chan string
}

var errNoAnswer = errors.New("the user gave no answer")

// capabilities are what the user can be asked for: forms, and to open pages.
func (u *user) capabilities() *mcp.ClientCapabilities {
	return &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapability{Form: &struct{}{}, URL: &struct{}{}}}
}

func (u *user) elicit(ctx context.Context, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	fmt.Fprintf(u.out, "The server asks: %s\n", p.Message)
	if p.Mode == "url" && !u.showURL(p.URL) {
		return &mcp.ElicitResult{Action: "decline"}, nil
	}
	if !isTerminal(u.in) {
		fmt.Fprintln(u.out, "Declined: standard input is not a terminal.")
		return &mcp.ElicitResult{Action: "decline"}, nil
	}
	if p.Mode == "url" {
		return u.visit(ctx)
	}
	return u.fill(ctx, p)
}

// showURL shows all of the address of a page, and whose it is. Nothing of it is
// fetched, and it is opened by the user or not at all (2026-07-28
// client/elicitation § Safe URL Handling).
func (u *user) showURL(text string) bool {
	page, err := url.Parse(text)
	if err != nil || page.Host == "" {
		fmt.Fprintf(u.out, "It names a page whose address is wrong: %q\n", text)
		return false
	}
	fmt.Fprintf(u.out, "It wants you to open a page of %s:\n  %s\n", page.Hostname(), text)
	if page.Scheme != "https" {
		fmt.Fprintln(u.out, "Beware: what you enter there is not protected by https.")
	}
	if page.User != nil {
		fmt.Fprintln(u.out, "Beware: what stands before the @ is not the host.")
	}
	if host := strings.ToLower(page.Hostname()); strings.Contains("."+host, ".xn--") || strings.ContainsFunc(host, func(r rune) bool { return r > unicode.MaxASCII }) {
		fmt.Fprintln(u.out, "Beware: the name of the host may look like that of another.")
	}
	return true
}

// visit asks whether the user will open a page.
func (u *user) visit(ctx context.Context) (*mcp.ElicitResult, error) {
	fmt.Fprint(u.out, "Will you open it, in a browser? It is not done for you. [y/n] ")
	return u.consent(ctx, nil)
}

// consent turns the answer to a question of yes or no into the user's.
func (u *user) consent(ctx context.Context, content json.RawMessage) (*mcp.ElicitResult, error) {
	line, err := u.line(ctx)
	switch {
	case errors.Is(err, errNoAnswer):
		return &mcp.ElicitResult{Action: "cancel"}, nil
	case err != nil:
		return nil, err
	case !strings.HasPrefix(strings.ToLower(line), "y"):
		return &mcp.ElicitResult{Action: "decline"}, nil
	}
	return &mcp.ElicitResult{Action: "accept", Content: content}, nil
}

// hear tells the user of a page that is done with (2025-11-25
// client/elicitation § Completion Notifications for URL Mode Elicitation).
func (u *user) hear(_ context.Context, method string, _ json.RawMessage) {
	if method == "notifications/elicitation/complete" {
		fmt.Fprintln(u.out, "The server says that the page is done with.")
	}
}

// fill lets the user fill in a form. The end of input cancels.
func (u *user) fill(ctx context.Context, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
	var form struct{ Required []string }
	if err := json.Unmarshal(p.RequestedSchema, &form); err != nil {
		return nil, err
	}
	fmt.Fprintln(u.out, "An empty line leaves a field out, the end of input cancels.")
	content := map[string]json.RawMessage{}
	for name, schema := range properties(p.RequestedSchema) {
		value, err := u.field(ctx, name, schema, slices.Contains(form.Required, name))
		switch {
		case errors.Is(err, errNoAnswer):
			return &mcp.ElicitResult{Action: "cancel"}, nil
		case err != nil:
			return nil, err
		case value != nil:
			content[name] = value
		}
	}
	encoded, err := json.Marshal(content)
	if err != nil {
		return nil, err
	}
	fmt.Fprint(u.out, "Send this to the server? [y/n] ")
	return u.consent(ctx, encoded)
}

// A choice is a value that a field may have; the two ways to write them.
type choice struct{ Const, Title string }

// A fieldSchema is what a form says of one field.
type fieldSchema struct {
	Type, Title, Description string
	Default                  json.RawMessage
	Enum                     []string
	OneOf, AnyOf             []choice
	Items                    *fieldSchema
}

// prompt is what the user is shown of a field.
func (f *fieldSchema) prompt(name string, required bool) string {
	text := name
	if f.Title != "" && f.Title != name {
		text = f.Title
	}
	if f.Description != "" {
		text += ": " + f.Description
	}
	notes := []string{f.Type}
	options := f
	if f.Items != nil {
		notes, options = []string{"any of, with commas between"}, f.Items
	}
	all := slices.Clone(options.Enum)
	for _, c := range slices.Concat(options.OneOf, options.AnyOf) {
		all = append(all, c.Const+" = "+c.Title)
	}
	if all != nil {
		notes = append(notes, strings.Join(all, " | "))
	}
	switch {
	case f.Default != nil:
		notes = append(notes, "default "+string(f.Default))
	case !required:
		notes = append(notes, "optional")
	}
	return fmt.Sprintf("  %s (%s): ", text, strings.Join(notes, "; "))
}

// value turns what the user typed into JSON.
func (f *fieldSchema) value(line string) json.RawMessage {
	var v any = line
	switch f.Type {
	case "boolean":
		switch strings.ToLower(line) {
		case "y", "yes", "true":
			v = true
		case "n", "no", "false":
			v = false
		}
	case "integer", "number":
		if json.Valid([]byte(line)) {
			return json.RawMessage(line)
		}
	case "array":
		parts := strings.Split(line, ",")
		for i := range parts {
			parts[i] = strings.TrimSpace(parts[i])
		}
		v = parts
	}
	encoded, _ := json.Marshal(v) // strings and booleans always can be
	return encoded
}

// field asks for one field until the answer fits; nil leaves it out.
func (u *user) field(ctx context.Context, name string, schema json.RawMessage, required bool) (json.RawMessage, error) {
	var f fieldSchema
	if err := json.Unmarshal(schema, &f); err != nil {
		return nil, fmt.Errorf("field %s of the form: %w", name, err)
	}
	check, err := mcp.CompileSchema(schema, nil)
	if err != nil {
		return nil, fmt.Errorf("field %s of the form: %w", name, err)
	}
	for {
		fmt.Fprint(u.out, f.prompt(name, required))
		line, err := u.line(ctx)
		if err != nil {
			return nil, err
		}
		if line == "" {
			if f.Default != nil || !required {
				return f.Default, nil
			}
			fmt.Fprintln(u.out, "  This field is required.")
			continue
		}
		value := f.value(line)
		if err := check.Validate(value); err != nil {
			fmt.Fprintf(u.out, "  That does not fit: %v\n", err)
			continue
		}
		return value, nil
	}
}

// line reads one line. A goroutine reads, since a read cannot be given up; it
// ends with the program.
func (u *user) line(ctx context.Context) (string, error) {
	if u.lines == nil {
		u.lines = make(chan string)
		go func() {
			defer close(u.lines)
			for s := bufio.NewScanner(u.in); s.Scan(); {
				u.lines <- strings.TrimSpace(s.Text())
			}
		}()
	}
	select {
	case line, ok := <-u.lines:
		if !ok {
			return "", errNoAnswer
		}
		return line, nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}
