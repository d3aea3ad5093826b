package mcp

import (
	"context"
	"testing"
)

// Faults of lists and of what is told of them.

// TestFault40ChangeNotices: each change is told by its own notice, to whom
// wants to know, and what changes nothing is not told.
func TestFault40ChangeNotices(t *testing.T) {
	shows(t, "tools.list-changed", "prompts.list-changed", "resources.list-changed", "resources.updated", "tools.list-changed.modern", "prompts.list-changed.modern")
	read := func(context.Context, *Request) (*ReadResourceResult, error) { return nil, nil }
	prompt := func(context.Context, *Request) (*GetPromptResult, error) { return nil, nil }
	for _, c := range []struct {
		name   string
		change func(s *Server)
		want   string // "" for none
	}{
		{"500 tools", func(s *Server) {
			for range 500 {
				rawTool(s, "new", func(context.Context, *Request) (*CallToolResult, error) { return nil, nil })
			}
		}, notifyToolsChanged},
		{"a tool goes", func(s *Server) { s.RemoveTools("fail") }, notifyToolsChanged},
		{"no tool goes", func(s *Server) { s.RemoveTools("none", "greet", "test://a") }, ""},
		{"a prompt comes", func(s *Server) { s.AddPrompt(Prompt{Name: "new"}, prompt) }, notifyPromptsChanged},
		{"a prompt goes", func(s *Server) { s.RemovePrompts("greet") }, notifyPromptsChanged},
		{"no prompt goes", func(s *Server) { s.RemovePrompts("none", "fail") }, ""},
		{"a resource comes", func(s *Server) { s.AddResource(Resource{URI: "test://new", Name: "new"}, read) }, notifyResourcesChanged},
		{"a resource goes", func(s *Server) { s.RemoveResources("test://a") }, notifyResourcesChanged},
		{"a template comes", func(s *Server) {
			s.AddResourceTemplate(ResourceTemplate{URITemplate: "test://new/{a}", Name: "n"}, read)
		}, notifyResourcesChanged},
		{"a template goes", func(s *Server) { s.RemoveResources("test://users/{id}") }, notifyResourcesChanged},
		{"no resource goes", func(s *Server) { s.RemoveResources("none", "test://users/1") }, ""},
		{"a watched resource changes", func(s *Server) { s.ResourceUpdated("test://a"); s.ResourceUpdated("test://a") }, notifyResourceUpdated},
		{"another changes", func(s *Server) { s.ResourceUpdated("test://a/"); s.ResourceUpdated("TEST://a"); s.ResourceUpdated("") }, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			leakCheck(t)
			s := testServer(nil)
			legacy, _ := dialServer(t, s)
			legacy.initialize("2025-11-25", "{}")
			fits(t, legacy.call(request("1", "resources/subscribe", `"uri":"test://a"`)), `{"result":{}}`)
			listens, _ := dialServer(t, s)
			listens.send(listenFrame("1", `{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true,"resourceSubscriptions":["test://a"]}`))
			fits(t, listens.next(), `{"method":"notifications/subscriptions/acknowledged"}`)
			early, _ := dialServer(t, s) // not initialized yet
			early.send(initializeFrame("0", "2025-11-25", "{}"))
			early.next()
			idle, _ := dialServer(t, s) // a modern client that does not listen
			c.change(s)
			if c.want == "" { // and a change that is told shows that nothing came before it
				c.want = notifyToolsChanged
				s.RemoveTools("panic")
			}
			fits(t, legacy.next(), `{"id":null,"method":"`+c.want+`"}`)
			fits(t, listens.next(), `{"id":null,"method":"`+c.want+`","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":1}}}`)
			legacy.alive()
			early.alive()
			fits(t, idle.call(modernRequest("1", "server/discover", "", "{}")), `{"id":1,"result":{}}`)
		})
	}
}
