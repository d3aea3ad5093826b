package main

import (
	"context"
	"fmt"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

// oauth signs in at a protected server through the official Go SDK, as a user
// who agrees to everything, and calls the tools that are named: peers oauth URL
// TOOL…. It prints their texts.
func oauth(ctx context.Context, url string, tools []string) error {
	const redirect = "http://127.0.0.1:9/callback" // nobody is there: the answer is read off the redirect
	handler, err := auth.NewAuthorizationCodeHandler(&auth.AuthorizationCodeHandlerConfig{
		DynamicClientRegistrationConfig: &auth.DynamicClientRegistrationConfig{Metadata: &oauthex.ClientRegistrationMetadata{
			ClientName: "peer", RedirectURIs: []string{redirect}, GrantTypes: []string{"authorization_code", "refresh_token"},
		}},
		RedirectURL: redirect,
		AuthorizationCodeFetcher: func(ctx context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
			browser := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
			response, err := browser.Get(args.URL)
			if err != nil {
				return nil, err
			}
			response.Body.Close()
			to, err := response.Location()
			if err != nil {
				return nil, fmt.Errorf("status %d: %w", response.StatusCode, err)
			}
			q := to.Query()
			return &auth.AuthorizationResult{Code: q.Get("code"), State: q.Get("state"), Iss: q.Get("iss")}, nil
		},
	})
	if err != nil {
		return err
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "peer", Version: "1"}, nil)
	session, err := client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: url, OAuthHandler: handler, DisableStandaloneSSE: true}, nil)
	if err != nil {
		return err
	}
	defer session.Close()
	for _, tool := range tools {
		result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: tool})
		if err != nil {
			return fmt.Errorf("%s: %w", tool, err)
		}
		fmt.Println(result.Content[0].(*mcp.TextContent).Text)
	}
	return nil
}
