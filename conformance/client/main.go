// Command client is what the official conformance suite tests a client by. It
// gets the server's URL as its last argument and the scenario from the
// environment, does what the scenario needs and exits.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"mcpkit/mcp"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 25*time.Second)
	defer cancel()
	if err := run(ctx, os.Getenv("MCP_CONFORMANCE_SCENARIO"), os.Args[len(os.Args)-1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// scenarios say what is done beyond connecting, listing the tools and calling
// each of them without arguments.
var scenarios = map[string]func(ctx context.Context, cs *mcp.ClientSession) error{
	"initialize":                         list,
	"tools_call":                         addNumbers,
	"http-standard-headers":              everything,
	"http-custom-headers":                customHeaders,
	"json-schema-ref-no-deref":           list,
	"json-schema-2020-12-preservation":   echoSchema,
	"sep-2640-client-no-prefetch":        listSkills,
	"sep-2640-client-verify-digest":      readSkill,
	"sep-2640-client-verify-size":        readSkill,
	"sep-2640-client-verify-frontmatter": readSkill,
}

func run(ctx context.Context, scenario, url string) error {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	c := mcp.NewClient(mcp.Implementation{Name: "mcpkit-conformance", Version: "1.0.0"}, &mcp.ClientOptions{
		Logger: log,
		Elicit: func(context.Context, *mcp.ElicitParams) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: json.RawMessage("{}")}, nil
		},
	})
	t := &mcp.HTTP{URL: url, Logger: log}
	if strings.HasPrefix(scenario, "auth/") {
		auth, err := authorization(log)
		if err != nil {
			return err
		}
		t.Auth = auth
	}
	cs, err := c.Connect(ctx, t)
	if err != nil {
		return err
	}
	do := scenarios[scenario]
	if do == nil {
		do = callAll
	}
	err = do(ctx, cs)
	return cmp.Or(err, cs.Close())
}

// list lists the tools.
func list(ctx context.Context, cs *mcp.ClientSession) error {
	_, err := tools(ctx, cs)
	return err
}

func tools(ctx context.Context, cs *mcp.ClientSession) (names []string, err error) {
	for tool, err := range cs.Tools(ctx) {
		if err != nil {
			return nil, err
		}
		names = append(names, tool.Name)
	}
	return names, nil
}

// callAll calls every tool.
func callAll(ctx context.Context, cs *mcp.ClientSession) error {
	names, err := tools(ctx, cs)
	if err != nil {
		return err
	}
	for _, name := range names {
		if _, err := cs.CallTool(ctx, name, nil); err != nil {
			return err
		}
	}
	return nil
}

func addNumbers(ctx context.Context, cs *mcp.ClientSession) error {
	if err := list(ctx, cs); err != nil {
		return err
	}
	_, err := cs.CallTool(ctx, "add_numbers", map[string]int{"a": 5, "b": 3})
	return err
}

// everything lists and uses whatever the server has.
func everything(ctx context.Context, cs *mcp.ClientSession) error {
	if err := callAll(ctx, cs); err != nil {
		return err
	}
	for resource, err := range cs.Resources(ctx) {
		if err != nil {
			return err
		}
		if _, err := cs.ReadResource(ctx, resource.URI); err != nil {
			return err
		}
	}
	for prompt, err := range cs.Prompts(ctx) {
		if err != nil {
			return err
		}
		if _, err := cs.GetPrompt(ctx, prompt.Name, nil); err != nil {
			return err
		}
	}
	return nil
}

// customHeaders makes the calls that the suite asks for.
func customHeaders(ctx context.Context, cs *mcp.ClientSession) error {
	var wanted struct {
		ToolCalls []struct {
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
		} `json:"toolCalls"`
	}
	if err := json.Unmarshal([]byte(os.Getenv("MCP_CONFORMANCE_CONTEXT")), &wanted); err != nil {
		return err
	}
	if err := list(ctx, cs); err != nil {
		return err
	}
	for _, call := range wanted.ToolCalls {
		if _, err := cs.CallTool(ctx, call.Name, call.Arguments); err != nil {
			return err
		}
	}
	return nil
}

// echoSchema sends a tool's schema back as it came.
func echoSchema(ctx context.Context, cs *mcp.ClientSession) error {
	for tool, err := range cs.Tools(ctx) {
		if err != nil {
			return err
		}
		if tool.Name == "json_schema_2020_12_tool" {
			_, err := cs.CallTool(ctx, "json_schema_echo", map[string]json.RawMessage{"schema": tool.InputSchema})
			return err
		}
	}
	return fmt.Errorf("there is no json_schema_2020_12_tool")
}
