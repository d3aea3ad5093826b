//go:build !mcp_nohttp

package mcp

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// This file is an authorization server to embed: OAuth 2.1 with what MCP asks
// of it (2026-07-28 basic/authorization).

// AuthServerOptions say what an AuthServer does. Issuer and Resources must be
// set, and Consent where users agree.
type AuthServerOptions struct {
	// Issuer is the server's URL, https or on a loopback address, and what its
	// tokens name. Its endpoints are below it.
	Issuer string
	// Resources are the MCP servers that tokens are for.
	Resources []string
	// Scopes are all there are; nil lets clients name any.
	Scopes []string
	// Consent asks the user; see ConsentPage. It answers the request itself, and
	// in the end calls Approve or Deny of what it was given. It gets every GET and
	// POST of the authorization endpoint that is in order.
	Consent func(w http.ResponseWriter, r *http.Request, a *Authorization)

	// Clients are those that are known beforehand.
	Clients []AuthClient
	// Registration lets anybody register clients (RFC 7591).
	Registration bool
	// NoClientDocuments refuses clients whose id is the URL of their
	// ClientMetadata.
	NoClientDocuments bool
	// TrustedIssuers vouch for users or workloads with JWTs.
	TrustedIssuers []TrustedIssuer

	// Key signs tokens; nil means a new one on P-256, so that tokens end with the
	// process.
	Key crypto.Signer
	// Store keeps codes, refresh tokens and registered clients; nil means in
	// memory.
	Store AuthStore
	// AccessTime is how long access tokens are good for; 0 means 10 minutes.
	// RefreshTime is how long one refresh token is; 0 means 30 days.
	AccessTime, RefreshTime time.Duration
	// ProofNonces makes clients that prove possession use a nonce of the server.
	ProofNonces bool
	// RateLimit, if set, refuses a request to the endpoints for tokens,
	// registration and revocation by returning an error.
	RateLimit func(r *http.Request) error
	// Client fetches clients' documents and issuers' keys; nil means one that
	// reaches public addresses only, or loopback ones if Issuer is one.
	Client *http.Client
	// Logger gets what is refused and why, without secrets. nil logs nothing.
	Logger *slog.Logger
}

// An AuthClient is a client that is known beforehand.
type AuthClient struct {
	// ClientMetadata needs ClientID, and RedirectURIs and GrantTypes as the client
	// uses them; no grant types are the authorization code. Keys are in JWKS or at
	// JWKSURI.
	ClientMetadata
	// Secret is compared with what the client sends; "" is a client without.
	Secret string
}

// A TrustedIssuer is whose JWTs are taken for a grant (RFC 7523): the ID-JAGs of
// an identity provider, or the identities of workloads.
type TrustedIssuer struct {
	Issuer  string
	JWKSURL string // where its keys are; "" means that its metadata says so
	// Workloads takes JWTs that are not ID-JAGs. It returns who the token will
	// speak for and the scopes that it may have, or an error.
	Workloads func(ctx context.Context, subject string, claims json.RawMessage) (as string, scopes []string, err error)
}

// An AuthStore keeps what an AuthServer must remember. Its methods may be called
// concurrently; entries are gone once they have expired. A zero time is never.
type AuthStore interface {
	// Add keeps a value under a key that is not in use, and reports whether it
	// was not.
	Add(ctx context.Context, key string, value []byte, expires time.Time) (added bool, err error)
	// Get returns a value, nil if there is none.
	Get(ctx context.Context, key string) ([]byte, error)
	// Take removes a value and returns it: to one caller only.
	Take(ctx context.Context, key string) ([]byte, error)
}

// maxStored is how many entries there may be in memory, and maxRegistered how
// many of them may be clients that registered: those stay.
const (
	maxStored     = 200000
	maxRegistered = 20000
)

type memoryAuth struct {
	mu      sync.Mutex
	entries map[string]memoryEntry
	clients int
	swept   time.Time
}

const clientPrefix = "client "

type memoryEntry struct {
	value   []byte
	expires time.Time
}

func (e *memoryEntry) over() bool { return !e.expires.IsZero() && time.Now().After(e.expires) }

func (m *memoryAuth) Add(_ context.Context, key string, value []byte, expires time.Time) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if old, ok := m.entries[key]; ok && !old.over() {
		return false, nil
	}
	if time.Since(m.swept) > time.Minute {
		m.swept = time.Now()
		for key, e := range m.entries {
			if e.over() {
				delete(m.entries, key)
			}
		}
	}
	client := strings.HasPrefix(key, clientPrefix)
	if len(m.entries) >= maxStored || client && m.clients >= maxRegistered {
		return false, errors.New("the store is full")
	}
	if client {
		m.clients++
	}
	m.entries[key] = memoryEntry{value, expires}
	return true, nil
}

func (m *memoryAuth) Get(_ context.Context, key string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e, ok := m.entries[key]; ok && !e.over() {
		return e.value, nil
	}
	return nil, nil
}

func (m *memoryAuth) Take(_ context.Context, key string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, ok := m.entries[key]
	delete(m.entries, key)
	if !ok || e.over() {
		return nil, nil
	}
	return e.value, nil
}

// An AuthServer is an authorization server. It is an [http.Handler] for its
// endpoints and for its metadata at the well-known places: mount it at "/", or
// at the path of its issuer and at "/.well-known/".
type AuthServer struct {
	opts    AuthServerOptions
	issuer  *url.URL
	base    string // path of the issuer
	places  []string
	store   AuthStore
	log     *slog.Logger
	fetch   fetcher
	proofs  proofChecker
	issuers map[string]*trusted

	mu     sync.Mutex
	keys   []signingKey // the first one signs
	nonces [2]string    // that proofs may have, the newest first
	turned time.Time
	docs   map[string]*clientDocument
}

type signingKey struct {
	signer crypto.Signer // nil for one that only verifies
	public webKey
	until  time.Time // of a key that signs no more
}

type trusted struct {
	TrustedIssuer
	verifier jwtVerifier
}

// A clientDocument is the metadata of a client that its id names.
type clientDocument struct {
	client  *AuthClient
	expires time.Time
}

const (
	codeTime       = time.Minute
	maxDocuments   = 1000
	maxOAuthBody   = 64 << 10
	maxAssertion   = time.Hour // how far ahead an assertion may end
	nonceTime      = 5 * time.Minute
	maxRedirects   = 10
	maxClientNames = 200
)

// NewAuthServer returns an authorization server. It panics if the options lack
// something or contradict each other.
func NewAuthServer(opts AuthServerOptions) *AuthServer {
	u, err := checkURL(opts.Issuer)
	if err != nil || u.RawQuery != "" || len(opts.Resources) == 0 {
		panic("mcp: NewAuthServer needs an https URL as Issuer, and Resources")
	}
	s := &AuthServer{opts: opts, issuer: u, base: strings.TrimSuffix(u.EscapedPath(), "/"), store: opts.Store, log: opts.Logger, fetch: fetcher{client: opts.Client, local: loopbackHost(u.Host)}, docs: make(map[string]*clientDocument), issuers: make(map[string]*trusted)}
	if s.store == nil {
		s.store = &memoryAuth{entries: make(map[string]memoryEntry)}
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.opts.AccessTime <= 0 {
		s.opts.AccessTime = 10 * time.Minute
	}
	if s.opts.RefreshTime <= 0 {
		s.opts.RefreshTime = 30 * 24 * time.Hour
	}
	s.places = []string{wellKnown(u, "oauth-authorization-server").Path, wellKnown(u, "openid-configuration").Path, s.base + "/.well-known/openid-configuration"}
	for _, t := range opts.TrustedIssuers {
		f := fetcher{client: opts.Client, local: isLocal(t.JWKSURL) || isLocal(t.Issuer)} // who trusts it says where it is
		s.issuers[t.Issuer] = &trusted{t, jwtVerifier{opts: JWTOptions{Issuer: t.Issuer}, keys: keySource{url: t.JWKSURL, fetch: f}}}
	}
	key := opts.Key
	if key == nil {
		if key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
			panic("mcp: " + err.Error())
		}
	}
	if err := s.Rotate(key); err != nil {
		panic("mcp: NewAuthServer: " + err.Error())
	}
	return s
}

// Rotate makes key sign from now on. Tokens that were signed before stay good
// for their time.
func (s *AuthServer) Rotate(key crypto.Signer) error {
	public, err := webKeyOf(key.Public())
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	keys := []signingKey{{signer: key, public: public}}
	for _, k := range s.keys {
		if k.until.IsZero() {
			k.until = now.Add(s.opts.AccessTime + clockSkew)
		}
		if k.signer = nil; now.Before(k.until) && k.public.Kid != public.Kid {
			keys = append(keys, k)
		}
	}
	s.keys = keys
	return nil
}

func (s *AuthServer) at(path string) string { return strings.TrimSuffix(s.opts.Issuer, "/") + path }

// Metadata returns what the server says of itself.
func (s *AuthServer) Metadata() AuthServerMetadata {
	m := AuthServerMetadata{
		Issuer: s.opts.Issuer, TokenEndpoint: s.at("/token"), RevocationEndpoint: s.at("/revoke"), IntrospectionEndpoint: s.at("/introspect"), JWKSURI: s.at("/jwks"),
		ScopesSupported: s.opts.Scopes, ResponseTypesSupported: []string{"code"}, GrantTypesSupported: []string{"client_credentials"},
		TokenEndpointAuthMethodsSupported:          []string{"none", "client_secret_basic", "client_secret_post", "private_key_jwt"},
		TokenEndpointAuthSigningAlgValuesSupported: signingAlgs, CodeChallengeMethodsSupported: []string{"S256"}, DPoPSigningAlgValuesSupported: signingAlgs,
		AuthorizationResponseIssParameterSupported: true, ClientIDMetadataDocumentSupported: !s.opts.NoClientDocuments,
		SubjectTypesSupported: []string{"public"}, IDTokenSigningAlgValuesSupported: []string{"ES256"},
	}
	if s.opts.Consent != nil {
		m.AuthorizationEndpoint = s.at("/authorize")
		m.GrantTypesSupported = []string{"authorization_code", "refresh_token", "client_credentials"}
	}
	if s.opts.Registration {
		m.RegistrationEndpoint = s.at("/register")
	}
	if len(s.issuers) > 0 {
		m.GrantTypesSupported = append(m.GrantTypesSupported, grantJWT)
		m.AuthorizationGrantProfilesSupported = []string{"urn:ietf:params:oauth:grant-profile:id-jag"}
	}
	return m
}

// ServeHTTP serves an endpoint or a document.
func (s *AuthServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimSuffix(r.URL.EscapedPath(), "/")
	if slices.Contains(s.places, path) {
		m := s.Metadata()
		body, _ := json.Marshal(&m)
		serveDocument(w, r, body)
		return
	}
	if path, ok := strings.CutPrefix(path, s.base); ok {
		switch path {
		case "/authorize":
			if s.opts.Consent != nil {
				s.authorize(w, r)
				return
			}
		case "/jwks":
			serveDocument(w, r, s.keySet())
			return
		case "/token":
			s.endpoint(w, r, formType, s.token)
			return
		case "/revoke":
			s.endpoint(w, r, formType, s.revoke)
			return
		case "/introspect":
			s.endpoint(w, r, formType, s.introspect)
			return
		case "/register":
			if s.opts.Registration {
				s.endpoint(w, r, "application/json", s.register)
				return
			}
		}
	}
	http.NotFound(w, r)
}

func (s *AuthServer) keySet() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	set := struct {
		Keys []webKey `json:"keys"`
	}{}
	for _, k := range s.keys {
		set.Keys = append(set.Keys, k.public)
	}
	body, _ := json.Marshal(&set)
	return body
}

// ---- Clients ------------------------------------------------------------------

// client returns a client by its id, nil if it is not known.
func (s *AuthServer) client(ctx context.Context, id string) (*AuthClient, error) {
	for i := range s.opts.Clients {
		if s.opts.Clients[i].ClientID == id && id != "" {
			return &s.opts.Clients[i], nil
		}
	}
	if data, err := s.store.Get(ctx, clientPrefix+id); err != nil {
		return nil, err
	} else if data != nil {
		var c AuthClient
		return &c, json.Unmarshal(data, &c)
	}
	if !s.opts.NoClientDocuments && (strings.HasPrefix(id, "https://") || strings.HasPrefix(id, "http://")) {
		return s.clientByDocument(ctx, id)
	}
	return nil, nil
}

// clientByDocument fetches what a client's id names (2026-07-28
// basic/authorization § Client ID Metadata Documents).
func (s *AuthServer) clientByDocument(ctx context.Context, id string) (*AuthClient, error) {
	u, err := checkURL(id)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the client id: %w", err)
	case strings.Trim(u.Path, "/") == "", slices.Contains(strings.Split(u.EscapedPath(), "/"), ".."), slices.Contains(strings.Split(u.EscapedPath(), "/"), "."):
		return nil, errors.New("the client id must be a URL with a path, and without dots as a part of it")
	case loopbackHost(u.Host) && !loopbackHost(s.issuer.Host):
		return nil, errors.New("the client id must not be on a loopback address")
	}
	s.mu.Lock()
	doc := s.docs[id]
	s.mu.Unlock()
	if doc != nil && time.Now().Before(doc.expires) {
		return doc.client, nil
	}
	status, header, body, err := s.fetch.get(ctx, id)
	if err != nil || status != http.StatusOK {
		return nil, fmt.Errorf("the client's document could not be fetched: status %d", status)
	}
	c := new(AuthClient)
	if err := decodeOAuth(body, &c.ClientMetadata); err != nil {
		return nil, fmt.Errorf("the client's document: %w", err)
	}
	if c.ClientID != id || c.ClientName == "" {
		return nil, errors.New("the client's document must have its URL as client_id, and a client_name")
	}
	if err := s.checkClient(&c.ClientMetadata, "private_key_jwt"); err != nil {
		return nil, fmt.Errorf("the client's document: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.docs) >= maxDocuments {
		clear(s.docs)
	}
	s.docs[id] = &clientDocument{c, time.Now().Add(cacheTime(header.Get("Cache-Control")))}
	return c, nil
}

// cacheTime is how long a document may be kept: as its headers say, within a
// minute and an hour.
func cacheTime(control string) time.Duration {
	for _, part := range strings.Split(control, ",") {
		if n, ok := strings.CutPrefix(strings.TrimSpace(strings.ToLower(part)), "max-age="); ok {
			if seconds, err := strconv.Atoi(n); err == nil {
				return max(time.Minute, min(time.Hour, time.Duration(seconds)*time.Second))
			}
		}
	}
	return time.Minute
}

// checkClient checks what a client says of itself; methods are how it may
// authenticate, besides not at all.
func (s *AuthServer) checkClient(m *ClientMetadata, methods ...string) error {
	if m.TokenEndpointAuthMethod == "" {
		m.TokenEndpointAuthMethod = "none"
	}
	switch {
	case len(m.RedirectURIs) == 0 || len(m.RedirectURIs) > maxRedirects:
		return fmt.Errorf("redirect_uris must have from 1 to %d members", maxRedirects)
	case len(m.ClientName) > maxClientNames:
		return fmt.Errorf("client_name must not be longer than %d bytes", maxClientNames)
	case m.TokenEndpointAuthMethod != "none" && !slices.Contains(methods, m.TokenEndpointAuthMethod):
		return fmt.Errorf("token_endpoint_auth_method %q is not to be had here", printable(m.TokenEndpointAuthMethod, 50))
	case m.TokenEndpointAuthMethod == "private_key_jwt" && m.JWKS == nil && m.JWKSURI == "":
		return errors.New("private_key_jwt needs jwks or jwks_uri")
	case m.ApplicationType != "" && m.ApplicationType != "web" && m.ApplicationType != "native":
		return errors.New(`application_type must be "web" or "native"`)
	}
	for _, grant := range m.GrantTypes {
		if grant != "authorization_code" && grant != "refresh_token" {
			return fmt.Errorf("the grant type %q is not to be had for such a client", printable(grant, 80))
		}
	}
	for _, redirect := range m.RedirectURIs {
		if err := checkRedirect(redirect, m.ApplicationType); err != nil {
			return err
		}
	}
	return nil
}

// checkRedirect checks a redirect URI that a client wants to use: https, http on
// a loopback address, or a scheme of its own with a dot in it (RFC 8252 § 7).
func checkRedirect(raw, application string) error {
	u, err := url.Parse(raw)
	local := err == nil && u.Scheme == "http" && loopbackHost(u.Host)
	private := err == nil && strings.Contains(u.Scheme, ".")
	switch {
	case err != nil || strings.Contains(raw, "#") || u.User != nil || strings.Contains(raw, "*"):
		return errors.New("a redirect URI is malformed, or has a fragment, a user or a wildcard")
	case u.Scheme == "https" && u.Host != "":
		return nil
	case (local || private) && application != "web":
		return nil
	}
	return fmt.Errorf("the redirect URI %q must be https, or for native applications on a loopback address", printable(raw, 200))
}

// redirectFits compares a redirect URI with the registered ones: exactly, but
// for the port on a loopback address (RFC 8252 § 7.3).
func redirectFits(registered []string, redirect string) bool {
	if slices.Contains(registered, redirect) {
		return true
	}
	u, err := url.Parse(redirect)
	if err != nil || u.Scheme != "http" {
		return false
	}
	if a, err := netip.ParseAddr(u.Hostname()); err != nil || !a.IsLoopback() {
		return false
	}
	return slices.ContainsFunc(registered, func(r string) bool {
		known, err := url.Parse(r)
		return err == nil && known.Scheme == "http" && known.Hostname() == u.Hostname() && known.EscapedPath() == u.EscapedPath() && known.RawQuery == u.RawQuery && u.Fragment == ""
	})
}

// ---- The authorization endpoint ----------------------------------------------------

// An Authorization is what a client asks a user for.
type Authorization struct {
	// Client is who asks. What it says of itself is not verified.
	Client ClientMetadata
	// RedirectHost is where the user goes back to: show it.
	RedirectHost string
	// Local says that this is a program on the user's own machine, which may be
	// any: warn of that.
	Local    bool
	Resource string
	Scopes   []string

	server *AuthServer
	grant  grant
	state  string
	values url.Values
}

// A grant is what a code or a refresh token stands for.
type grant struct {
	Client    string   `json:"client"`
	Redirect  string   `json:"redirect,omitempty"`
	Challenge string   `json:"challenge,omitempty"`
	Resource  string   `json:"resource"`
	Scopes    []string `json:"scopes"`
	Subject   string   `json:"subject"`
	Family    string   `json:"family"`        // of tokens, which ends as a whole
	Key       string   `json:"key,omitempty"` // thumbprint, of a client that proves possession
}

// single returns the parameters, if none is given twice.
func single(values url.Values, several ...string) *oauthError {
	for name, v := range values {
		if len(v) > 1 && !slices.Contains(several, name) {
			return oauthErrorf(http.StatusBadRequest, "invalid_request", "%s is given twice", printable(name, 50))
		}
	}
	return nil
}

func (s *AuthServer) authorize(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Cache-Control", "no-store")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("X-Frame-Options", "DENY")
	header.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'")
	header.Set("X-Content-Type-Options", "nosniff")
	if r.Method != http.MethodGet && r.Method != http.MethodPost {
		methodNotAllowed(w, "GET, POST")
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxOAuthBody)
	a, err := s.authorization(r)
	if err != nil { // nobody has shown that the redirect URI is a client's
		s.log.Info("mcp: an authorization was refused", "error", err)
		http.Error(w, "The request of this application is not in order: "+err.Error(), http.StatusBadRequest)
		return
	}
	if bad := a.check(r); bad != nil {
		a.redirect(w, r, url.Values{"error": {bad.code}, "error_description": {bad.description}})
		return
	}
	s.opts.Consent(w, r, a)
}

// authorization reads a request as far as its client and where that wants to be
// answered.
func (s *AuthServer) authorization(r *http.Request) (*Authorization, error) {
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, errors.New("the query is malformed")
	}
	if bad := single(q, "resource"); bad != nil {
		return nil, bad
	}
	c, err := s.client(r.Context(), q.Get("client_id"))
	switch {
	case err != nil:
		return nil, err
	case c == nil:
		return nil, errors.New("the client is not known")
	case !redirectFits(c.RedirectURIs, q.Get("redirect_uri")):
		return nil, errors.New("the redirect URI is none of the client's")
	}
	u, err := url.Parse(q.Get("redirect_uri"))
	if err != nil {
		return nil, errors.New("the redirect URI is malformed")
	}
	a := &Authorization{
		Client: c.ClientMetadata, RedirectHost: u.Host, Local: u.Scheme != "https", server: s, state: q.Get("state"), values: q,
		grant: grant{Client: c.ClientID, Redirect: q.Get("redirect_uri"), Challenge: q.Get("code_challenge")},
	}
	if a.RedirectHost == "" {
		a.RedirectHost = u.Scheme + ":"
	}
	return a, nil
}

// check judges the rest of a request.
func (a *Authorization) check(*http.Request) *oauthError {
	s, q := a.server, a.values
	bad := func(code, text string) *oauthError { return oauthErrorf(http.StatusBadRequest, code, "%s", text) }
	switch raw, err := base64.RawURLEncoding.DecodeString(a.grant.Challenge); {
	case q.Get("response_type") != "code":
		return bad("unsupported_response_type", "response_type must be code")
	case len(a.Client.GrantTypes) > 0 && !slices.Contains(a.Client.GrantTypes, "authorization_code"):
		return bad("unauthorized_client", "the client does not use authorization codes")
	case q.Get("code_challenge_method") != "S256" || err != nil || len(raw) != sha256.Size:
		return bad("invalid_request", "PKCE with S256 is required")
	case a.Client.DPoPBoundAccessTokens && q.Get("dpop_jkt") != "" && len(q.Get("dpop_jkt")) != 43:
		return bad("invalid_request", "dpop_jkt is malformed")
	}
	resource, e := s.resource(q["resource"])
	if e != nil {
		return e
	}
	scopes, e := s.scopes(q.Get("scope"))
	if e != nil {
		return e
	}
	a.Resource, a.Scopes = resource, scopes
	a.grant.Resource, a.grant.Key = resource, q.Get("dpop_jkt")
	return nil
}

// resource returns the resource that tokens are asked for (RFC 8707). Clients of
// 2025-03-26 name none: that is clear where there is only one.
func (s *AuthServer) resource(named []string) (string, *oauthError) {
	if len(named) == 0 && len(s.opts.Resources) == 1 {
		return s.opts.Resources[0], nil
	}
	if len(named) == 1 {
		for _, r := range s.opts.Resources {
			if sameResource(r, named[0]) {
				return r, nil
			}
		}
	}
	return "", oauthErrorf(http.StatusBadRequest, "invalid_target", "resource must be one that tokens are issued for here")
}

func (s *AuthServer) scopes(text string) ([]string, *oauthError) {
	scopes := unique(strings.Fields(text))
	for _, scope := range scopes {
		if s.opts.Scopes != nil && !slices.Contains(s.opts.Scopes, scope) && scope != "offline_access" || len(scope) > 100 || len(scopes) > 100 {
			return nil, oauthErrorf(http.StatusBadRequest, "invalid_scope", "the scope %s is not known", printable(scope, 50))
		}
	}
	return scopes, nil
}

// Approve answers the request with a code for the user. scopes are those that
// the user agreed to, of a.Scopes.
func (a *Authorization) Approve(w http.ResponseWriter, r *http.Request, subject string, scopes []string) {
	s := a.server
	g := a.grant
	g.Subject, g.Family = subject, randomText()
	for _, scope := range scopes {
		if slices.Contains(a.Scopes, scope) {
			g.Scopes = append(g.Scopes, scope)
		}
	}
	code := randomText() + randomText()
	value, err := json.Marshal(&g)
	if err == nil {
		_, err = s.store.Add(r.Context(), "code "+tokenHash(code), value, time.Now().Add(codeTime))
	}
	if err != nil || subject == "" {
		s.log.Error("mcp: a code could not be kept", "error", err)
		a.redirect(w, r, url.Values{"error": {"server_error"}})
		return
	}
	a.redirect(w, r, url.Values{"code": {code}})
}

// Deny answers the request with the user's refusal.
func (a *Authorization) Deny(w http.ResponseWriter, r *http.Request) {
	a.redirect(w, r, url.Values{"error": {"access_denied"}})
}

// redirect answers the client, and says whose answer it is (RFC 9207).
func (a *Authorization) redirect(w http.ResponseWriter, r *http.Request, answer url.Values) {
	u, err := url.Parse(a.grant.Redirect)
	if err != nil {
		http.Error(w, "the redirect URI is malformed", http.StatusBadRequest)
		return
	}
	q := u.Query()
	for name, values := range answer {
		q[name] = values
	}
	q.Set("iss", a.server.opts.Issuer)
	if a.state != "" {
		q.Set("state", a.state)
	}
	u.RawQuery = q.Encode()
	w.Header().Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	http.Redirect(w, r, u.String(), http.StatusSeeOther)
}

// ConsentPage returns an AuthServerOptions.Consent: a plain page that says who
// asks for what, and that is safe from other sites. user returns who is signed
// in; when nobody is, it answers the request itself, such as with a page to sign
// in on, and reports false.
func ConsentPage(user func(w http.ResponseWriter, r *http.Request) (subject string, ok bool)) func(http.ResponseWriter, *http.Request, *Authorization) {
	return func(w http.ResponseWriter, r *http.Request, a *Authorization) {
		subject, ok := user(w, r)
		if !ok {
			return
		}
		const cookie = "mcp-consent"
		if r.Method == http.MethodPost {
			mine, err := r.Cookie(cookie)
			if err != nil || mine.Value == "" || !sameSecret(mine.Value, r.PostFormValue("token")) {
				http.Error(w, "This form is not from here, or too old.", http.StatusForbidden)
				return
			}
			if r.PostFormValue("answer") == "allow" {
				a.Approve(w, r, subject, a.Scopes)
			} else {
				a.Deny(w, r)
			}
			return
		}
		token := randomText()
		http.SetCookie(w, &http.Cookie{Name: cookie, Value: token, Path: r.URL.Path, MaxAge: 600, HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: a.server.issuer.Scheme == "https"})
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		io.WriteString(w, a.page(subject, token))
	}
}

// page is what the user sees. Everything in it that is not ours is text.
func (a *Authorization) page(subject, token string) string {
	var b strings.Builder
	line := func(format string, args ...any) {
		for i := range args {
			args[i] = html.EscapeString(fmt.Sprint(args[i]))
		}
		fmt.Fprintf(&b, format+"\n", args...)
	}
	name := a.Client.ClientName
	if name == "" {
		name = a.Client.ClientID
	}
	line(`<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>Allow access?</title>`)
	line(`<body style="font-family:sans-serif;max-width:40em;margin:3em auto"><h1>Allow access?</h1>`)
	line(`<p>An application that calls itself <b>%s</b> asks to use <b>%s</b> for you, %s.</p>`, name, a.Resource, subject)
	if len(a.Scopes) > 0 {
		line(`<p>It wants to: <code>%s</code></p>`, strings.Join(a.Scopes, " "))
	}
	line(`<p>Afterwards you will be sent to <b>%s</b>.</p>`, a.RedirectHost)
	if a.Local {
		line(`<p><b>This is a program on your own computer.</b> Any program there can call itself that. Go on only if you have just started it.</p>`)
	}
	line(`<form method="post"><input type="hidden" name="token" value="%s">`, token)
	line(`<button name="answer" value="allow">Allow</button> <button name="answer" value="deny">Deny</button></form>`)
	return b.String()
}

// ---- The other endpoints --------------------------------------------------------------

// endpoint serves what programs post. answer is written as JSON.
func (s *AuthServer) endpoint(w http.ResponseWriter, r *http.Request, contentType string, serve func(w http.ResponseWriter, r *http.Request) (status int, answer any, err error)) {
	if !openToPages(w, r, http.MethodPost) {
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	r.Body = http.MaxBytesReader(w, r.Body, maxOAuthBody)
	status, answer, err := 0, any(nil), error(nil)
	typ, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if s.opts.RateLimit != nil {
		if s.opts.RateLimit(r) != nil {
			err = oauthErrorf(http.StatusTooManyRequests, "temporarily_unavailable", "too many requests")
		}
	}
	if err == nil && typ != contentType {
		err = oauthErrorf(http.StatusBadRequest, "invalid_request", "the content type must be %s", contentType)
	}
	if err == nil {
		status, answer, err = serve(w, r)
	}
	if err != nil {
		var e *oauthError
		if !errors.As(err, &e) {
			s.log.Error("mcp: an endpoint failed", "path", r.URL.Path, "error", err)
			e = oauthErrorf(http.StatusInternalServerError, "server_error", "internal error")
		} else {
			s.log.Info("mcp: a request was refused", "path", r.URL.Path, "error", e)
		}
		if e.status == http.StatusUnauthorized && r.Header.Get("Authorization") != "" {
			w.Header().Set("WWW-Authenticate", `Basic realm="token"`)
		}
		status, answer = e.status, map[string]string{"error": e.code, "error_description": e.description}
	}
	body, err := json.Marshal(answer)
	if err != nil {
		status, body = http.StatusInternalServerError, []byte(`{"error":"server_error"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(body)
}

// form reads a posted form.
func form(r *http.Request) (url.Values, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, oauthErrorf(http.StatusRequestEntityTooLarge, "invalid_request", "the request is too long")
	}
	values, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, oauthErrorf(http.StatusBadRequest, "invalid_request", "the form is malformed")
	}
	if bad := single(values, "resource"); bad != nil {
		return nil, bad
	}
	return values, nil
}

// authenticated returns the client that a request is of, which has shown it as it
// is registered to (RFC 6749 § 2.3).
func (s *AuthServer) authenticated(r *http.Request, f url.Values) (*AuthClient, error) {
	refused := oauthErrorf(http.StatusUnauthorized, "invalid_client", "the client is not known, or did not authenticate as it is registered to")
	id, secret, method := f.Get("client_id"), f.Get("client_secret"), "none"
	switch user, password, basic := r.BasicAuth(); {
	case basic && (f.Has("client_secret") || f.Has("client_assertion")):
		return nil, oauthErrorf(http.StatusBadRequest, "invalid_request", "the client must authenticate in one way")
	case basic:
		user, err1 := url.QueryUnescape(user)
		password, err2 := url.QueryUnescape(password)
		if err1 != nil || err2 != nil || id != "" && id != user {
			return nil, refused
		}
		id, secret, method = user, password, "client_secret_basic"
	case f.Has("client_assertion"):
		method = "private_key_jwt"
		t, err := parseJWT(f.Get("client_assertion"))
		if err != nil || f.Get("client_assertion_type") != assertionType || id != "" && id != t.claims.Sub {
			return nil, refused
		}
		id = t.claims.Sub
	case secret != "":
		method = "client_secret_post"
	}
	c, err := s.client(r.Context(), id)
	if err != nil {
		s.log.Info("mcp: a client was refused", "error", err)
	}
	if err != nil || c == nil {
		return nil, refused
	}
	switch registered := c.method(); {
	case method == "private_key_jwt" && registered == method:
		err = s.checkAssertion(r.Context(), c, f.Get("client_assertion"))
	case method == "none" && registered == "none":
	case (method == "client_secret_basic" || method == "client_secret_post") && (registered == method || c.TokenEndpointAuthMethod == "") && c.Secret != "":
		if !sameSecret(secret, c.Secret) {
			err = errors.New("wrong secret")
		}
	default:
		err = fmt.Errorf("it used %s and is registered for %s", method, registered)
	}
	if err != nil {
		s.log.Info("mcp: a client was refused", "client", printable(id, 100), "error", err)
		return nil, refused
	}
	return c, nil
}

// method is how a client is to authenticate.
func (c *AuthClient) method() string {
	switch {
	case c.TokenEndpointAuthMethod != "":
		return c.TokenEndpointAuthMethod
	case c.Secret != "":
		return "client_secret_basic"
	case c.JWKS != nil || c.JWKSURI != "":
		return "private_key_jwt"
	}
	return "none"
}

// checkAssertion checks the JWT that a client authenticates with (RFC 7523 § 3).
func (s *AuthServer) checkAssertion(ctx context.Context, c *AuthClient, assertion string) error {
	t, err := parseJWT(assertion)
	if err != nil {
		return err
	}
	var keys []webKey
	if c.JWKS != nil {
		keys, err = parseKeySet(c.JWKS)
	} else {
		var body []byte
		if _, _, body, err = s.fetch.get(ctx, c.JWKSURI); err == nil {
			keys, err = parseKeySet(body)
		}
	}
	if err == nil {
		err = verifyWith(keys, t)
	}
	if err == nil {
		err = t.claims.valid(time.Now())
	}
	switch {
	case err != nil:
		return err
	case t.claims.Iss != c.ClientID || t.claims.Sub != c.ClientID:
		return errors.New("the assertion is of another client")
	case !slices.Contains(t.claims.Aud, s.opts.Issuer) && !slices.Contains(t.claims.Aud, s.at("/token")):
		return errors.New("the assertion is for another server")
	}
	return s.once(ctx, "assertion "+c.ClientID, &t.claims)
}

// verifyWith checks a signature with one of several keys.
func verifyWith(keys []webKey, t *jwt) error {
	err := errors.New("the token's key is not known")
	for _, k := range keys {
		if t.header.Kid != "" && k.Kid != "" && k.Kid != t.header.Kid {
			continue
		}
		key, alg, bad := k.public()
		if bad == nil {
			bad = t.verify(key, alg)
		}
		if err = bad; bad == nil {
			return nil
		}
	}
	return err
}

// once takes every jti one time, until the token has expired.
func (s *AuthServer) once(ctx context.Context, kind string, c *jwtClaims) error {
	until := c.Exp.time().Add(clockSkew)
	if c.Jti == "" || len(c.Jti) > 256 || time.Until(until) > maxAssertion {
		return errors.New("the assertion must have a jti, and end within an hour")
	}
	added, err := s.store.Add(ctx, kind+" jti "+tokenHash(c.Iss+" "+c.Jti), []byte{1}, until)
	if err == nil && !added {
		err = errors.New("the assertion was used before")
	}
	return err
}

// register makes a client known (RFC 7591).
func (s *AuthServer) register(_ http.ResponseWriter, r *http.Request) (int, any, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return 0, nil, oauthErrorf(http.StatusRequestEntityTooLarge, "invalid_client_metadata", "the request is too long")
	}
	var m ClientMetadata
	if err := decodeOAuth(body, &m); err != nil {
		return 0, nil, oauthErrorf(http.StatusBadRequest, "invalid_client_metadata", "%v", err)
	}
	if err := s.checkClient(&m, "client_secret_basic", "client_secret_post", "private_key_jwt"); err != nil {
		code := "invalid_client_metadata"
		if strings.Contains(err.Error(), "redirect") {
			code = "invalid_redirect_uri"
		}
		return 0, nil, oauthErrorf(http.StatusBadRequest, code, "%v", err)
	}
	c := AuthClient{ClientMetadata: m}
	c.ClientID = "c-" + randomText()
	answer := struct {
		ClientMetadata
		Secret  string `json:"client_secret,omitempty"`
		Issued  int64  `json:"client_id_issued_at"`
		Expires *int64 `json:"client_secret_expires_at,omitempty"`
	}{ClientMetadata: c.ClientMetadata, Issued: time.Now().Unix()}
	if strings.HasPrefix(m.TokenEndpointAuthMethod, "client_secret_") {
		c.Secret = randomText() + randomText()
		answer.Secret, answer.Expires = c.Secret, new(int64)
	}
	value, err := json.Marshal(&c)
	if err == nil {
		_, err = s.store.Add(r.Context(), clientPrefix+c.ClientID, value, time.Time{})
	}
	return http.StatusCreated, &answer, err
}

// ---- Tokens ------------------------------------------------------------------------

func invalidGrant(text string) *oauthError {
	return oauthErrorf(http.StatusBadRequest, "invalid_grant", "%s", text)
}

// token is the token endpoint (RFC 6749 § 3.2).
func (s *AuthServer) token(w http.ResponseWriter, r *http.Request) (int, any, error) {
	f, err := form(r)
	if err != nil {
		return 0, nil, err
	}
	key := ""
	if len(r.Header["Dpop"]) > 0 {
		if key, err = s.checkProof(w, r); err != nil {
			return 0, nil, err
		}
	}
	if f.Get("grant_type") == grantJWT {
		return s.byAssertion(r, f, key)
	}
	c, err := s.authenticated(r, f)
	if err != nil {
		return 0, nil, err
	}
	if c.DPoPBoundAccessTokens && key == "" {
		return 0, nil, oauthErrorf(http.StatusBadRequest, "invalid_dpop_proof", "the client's tokens need proof of possession")
	}
	grants := c.GrantTypes
	if len(grants) == 0 {
		grants = []string{"authorization_code"}
	}
	switch kind := f.Get("grant_type"); {
	case kind != "authorization_code" && kind != "refresh_token" && kind != "client_credentials":
		return 0, nil, oauthErrorf(http.StatusBadRequest, "unsupported_grant_type", "the grant type is not known here")
	case !slices.Contains(grants, kind):
		return 0, nil, oauthErrorf(http.StatusBadRequest, "unauthorized_client", "the client does not use this grant type")
	case kind == "authorization_code":
		return s.byCode(r, f, c, key)
	case kind == "refresh_token":
		return s.byRefresh(r, f, c, key)
	}
	return s.byCredentials(r, f, c, key)
}

// checkProof checks the proof of a token request and returns its key's thumbprint.
func (s *AuthServer) checkProof(w http.ResponseWriter, r *http.Request) (string, error) {
	at, _ := url.Parse(s.at("/token"))
	if !s.opts.ProofNonces {
		key, err := s.proofs.check(r, at, "", "", "")
		if err != nil {
			err = oauthErrorf(http.StatusBadRequest, "invalid_dpop_proof", "%v", err)
		}
		return key, err
	}
	current, before := s.currentNonces()
	w.Header().Set("DPoP-Nonce", current)
	wanted := current
	if len(r.Header["Dpop"]) == 1 {
		if t, err := parseJWT(r.Header["Dpop"][0]); err == nil && before != "" && t.claims.Nonce == before {
			wanted = before
		}
	}
	key, err := s.proofs.check(r, at, "", wanted, "")
	switch {
	case errors.Is(err, errNonce):
		err = oauthErrorf(http.StatusBadRequest, "use_dpop_nonce", "%v", err)
	case err != nil:
		err = oauthErrorf(http.StatusBadRequest, "invalid_dpop_proof", "%v", err)
	}
	return key, err
}

func (s *AuthServer) currentNonces() (current, before string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := time.Now(); s.nonces[0] == "" || now.Sub(s.turned) > nonceTime {
		s.nonces[1], s.nonces[0], s.turned = s.nonces[0], randomText(), now
	}
	return s.nonces[0], s.nonces[1]
}

// byCode trades a code in. One that comes a second time ends what came of it
// (RFC 9700 § 4.13).
func (s *AuthServer) byCode(r *http.Request, f url.Values, c *AuthClient, key string) (int, any, error) {
	ctx, hash := r.Context(), tokenHash(f.Get("code"))
	value, err := s.store.Take(ctx, "code "+hash)
	if err != nil {
		return 0, nil, err
	}
	if value == nil {
		if family, _ := s.store.Get(ctx, "spent "+hash); family != nil {
			s.end(ctx, string(family))
			s.log.Warn("mcp: a code was used twice; its tokens are revoked", "client", c.ClientID)
		}
		return 0, nil, invalidGrant("the code is not valid, or was used before")
	}
	var g grant
	if err := json.Unmarshal(value, &g); err != nil {
		return 0, nil, err
	}
	verifier := f.Get("code_verifier")
	switch {
	case g.Client != c.ClientID:
		return 0, nil, invalidGrant("the code is another client's")
	case f.Get("redirect_uri") != g.Redirect && f.Has("redirect_uri"):
		return 0, nil, invalidGrant("redirect_uri is not that of the authorization")
	case len(verifier) < 43 || len(verifier) > 128 || !sameSecret(tokenHash(verifier), g.Challenge):
		return 0, nil, invalidGrant("code_verifier is not that of the code_challenge")
	case g.Key != "" && g.Key != key:
		return 0, nil, invalidGrant("the code belongs to another key")
	}
	if bad := s.narrow(&g, f, false); bad != nil {
		return 0, nil, bad
	}
	g.Redirect, g.Challenge, g.Key = "", "", key
	until := time.Now().Add(s.opts.RefreshTime)
	if _, err := s.store.Add(ctx, "spent "+hash, []byte(g.Family), until); err != nil {
		return 0, nil, err
	}
	return s.issue(ctx, c, &g, key, slices.Contains(c.GrantTypes, "refresh_token"))
}

// end revokes a family: all that was issued until now expires before that is
// forgotten.
func (s *AuthServer) end(ctx context.Context, family string) {
	if _, err := s.store.Add(ctx, "dead "+family, []byte{1}, time.Now().Add(s.opts.RefreshTime)); err != nil {
		s.log.Error("mcp: tokens could not be revoked", "error", err)
	}
}

// narrow takes what a token request says of the resource and the scopes, which
// can only become fewer.
func (s *AuthServer) narrow(g *grant, f url.Values, scopes bool) *oauthError {
	if f.Has("resource") {
		if resource, bad := s.resource(f["resource"]); bad != nil || resource != g.Resource {
			return oauthErrorf(http.StatusBadRequest, "invalid_target", "resource is not that of the authorization")
		}
	}
	if !scopes || !f.Has("scope") {
		return nil
	}
	wanted := unique(strings.Fields(f.Get("scope")))
	if slices.ContainsFunc(wanted, func(scope string) bool { return !slices.Contains(g.Scopes, scope) }) {
		return oauthErrorf(http.StatusBadRequest, "invalid_scope", "the scopes are more than were granted")
	}
	g.Scopes = wanted
	return nil
}

// byRefresh trades a refresh token in for another one. One that comes a second
// time was stolen, from one side or the other: all that came of it ends (RFC 9700
// § 4.14).
func (s *AuthServer) byRefresh(r *http.Request, f url.Values, c *AuthClient, key string) (int, any, error) {
	ctx, hash := r.Context(), tokenHash(f.Get("refresh_token"))
	refused := invalidGrant("the refresh token is not valid, or was used before")
	value, err := s.store.Get(ctx, "refresh "+hash)
	if err != nil {
		return 0, nil, err
	}
	var g grant
	if value != nil {
		if err := json.Unmarshal(value, &g); err != nil {
			return 0, nil, err
		}
		if g.Client != c.ClientID || g.Key != "" && g.Key != key {
			return 0, nil, refused // and it is still good for whose it is
		}
		if bad := s.narrow(&g, f, true); bad != nil {
			return 0, nil, bad
		}
		if value, err = s.store.Take(ctx, "refresh "+hash); err != nil {
			return 0, nil, err
		}
	}
	if value == nil {
		if family, _ := s.store.Get(ctx, "spent "+hash); family != nil {
			s.end(ctx, string(family))
			s.log.Warn("mcp: a refresh token was used twice; its tokens are revoked", "client", c.ClientID)
		}
		return 0, nil, refused
	}
	if _, err := s.store.Add(ctx, "spent "+hash, []byte(g.Family), time.Now().Add(s.opts.RefreshTime)); err != nil {
		return 0, nil, err
	}
	if dead, err := s.store.Get(ctx, "dead "+g.Family); err != nil || dead != nil {
		return 0, nil, refused
	}
	return s.issue(ctx, c, &g, key, true)
}

// byCredentials gives a client a token for itself.
func (s *AuthServer) byCredentials(r *http.Request, f url.Values, c *AuthClient, key string) (int, any, error) {
	if c.method() == "none" {
		return 0, nil, oauthErrorf(http.StatusBadRequest, "unauthorized_client", "the client has no credentials")
	}
	resource, bad := s.resource(f["resource"])
	if bad != nil {
		return 0, nil, bad
	}
	scopes, bad := s.scopes(f.Get("scope"))
	if bad != nil {
		return 0, nil, bad
	}
	if allowed := strings.Fields(c.Scope); c.Scope != "" {
		scopes = slices.DeleteFunc(scopes, func(scope string) bool { return !slices.Contains(allowed, scope) })
	}
	return s.issue(r.Context(), c, &grant{Client: c.ClientID, Resource: resource, Scopes: scopes, Subject: c.ClientID}, key, false)
}

// byAssertion takes the word of a trusted issuer (RFC 7523 § 2.1): an ID-JAG for
// a client that is known here, or a workload's identity.
func (s *AuthServer) byAssertion(r *http.Request, f url.Values, key string) (int, any, error) {
	ctx := r.Context()
	t, err := parseJWT(f.Get("assertion"))
	if err != nil {
		return 0, nil, invalidGrant("the assertion is malformed")
	}
	from := s.issuers[t.claims.Iss]
	if from == nil {
		return 0, nil, invalidGrant("the assertion's issuer is not trusted")
	}
	if err := from.verifier.locate(ctx); err != nil {
		return 0, nil, fmt.Errorf("the keys of %s: %w", t.claims.Iss, err)
	}
	if err := from.verifier.keys.verify(ctx, t); err != nil {
		var unavailable *unavailableError
		if errors.As(err, &unavailable) {
			return 0, nil, err
		}
		return 0, nil, invalidGrant(err.Error())
	}
	err = t.claims.valid(time.Now())
	switch {
	case err != nil:
		return 0, nil, invalidGrant(err.Error())
	case t.claims.Sub == "" || len(t.claims.Aud) != 1 || t.claims.Aud[0] != s.opts.Issuer && t.claims.Aud[0] != s.at("/token"):
		return 0, nil, invalidGrant("the assertion must have a subject and be for this server alone")
	}
	if strings.TrimPrefix(strings.ToLower(t.header.Typ), "application/") == typeJAGInToken {
		return s.byIDJAG(r, f, t, key)
	}
	if from.Workloads == nil {
		return 0, nil, invalidGrant("the assertion is no ID-JAG")
	}
	resource, bad := s.resource(f["resource"])
	if bad != nil {
		return 0, nil, bad
	}
	scopes, bad := s.scopes(f.Get("scope"))
	if bad != nil {
		return 0, nil, bad
	}
	as, allowed, err := from.Workloads(ctx, t.claims.Sub, t.payload)
	if err != nil || as == "" {
		s.log.Info("mcp: a workload was refused", "error", err)
		return 0, nil, invalidGrant("the workload may not have tokens")
	}
	if err := s.once(ctx, "workload", &t.claims); err != nil {
		return 0, nil, invalidGrant(err.Error())
	}
	g := &grant{Client: as, Resource: resource, Scopes: both(scopes, allowed), Subject: as}
	return s.issue(ctx, &AuthClient{ClientMetadata: ClientMetadata{ClientID: as}}, g, key, false)
}

// both returns what is in both lists; all that is allowed where nothing was asked
// for.
func both(wanted, allowed []string) []string {
	if len(wanted) == 0 {
		return allowed
	}
	return slices.DeleteFunc(slices.Clone(wanted), func(scope string) bool { return !slices.Contains(allowed, scope) })
}

// byIDJAG takes the word of an enterprise's identity provider (the extension
// Enterprise-Managed Authorization).
func (s *AuthServer) byIDJAG(r *http.Request, f url.Values, t *jwt, key string) (int, any, error) {
	c, err := s.authenticated(r, f)
	if err != nil {
		return 0, nil, err
	}
	switch {
	case t.claims.Aud[0] != s.opts.Issuer:
		return 0, nil, invalidGrant("the assertion is for another server")
	case t.claims.ClientID != c.ClientID:
		return 0, nil, invalidGrant("the assertion is for another client")
	case t.claims.Iat == 0:
		return 0, nil, invalidGrant("the assertion must say when it was issued")
	}
	named := f["resource"]
	if len(named) == 0 {
		named = t.claims.Resource
	}
	resource, bad := s.resource(named)
	if bad != nil {
		return 0, nil, invalidGrant(bad.description)
	}
	for _, r := range t.claims.Resource {
		if !sameResource(r, resource) {
			return 0, nil, invalidGrant("the assertion is for another resource")
		}
	}
	scopes, bad := s.scopes(f.Get("scope"))
	if bad != nil {
		return 0, nil, invalidGrant(bad.description)
	}
	if err := s.once(r.Context(), "jag", &t.claims); err != nil {
		return 0, nil, invalidGrant(err.Error())
	}
	g := &grant{Client: c.ClientID, Resource: resource, Scopes: both(scopes, strings.Fields(t.claims.Scope)), Subject: t.claims.Sub}
	return s.issue(r.Context(), c, g, key, false)
}

// issue makes an access token, a JWT (RFC 9068), and a refresh token if wanted.
func (s *AuthServer) issue(ctx context.Context, c *AuthClient, g *grant, key string, renewable bool) (int, any, error) {
	now := time.Now()
	claims := jwtClaims{
		Iss: s.opts.Issuer, Sub: g.Subject, Aud: stringOrSet{g.Resource}, ClientID: c.ClientID, Scope: strings.Join(g.Scopes, " "), Jti: randomText(),
		Iat: numericDate(now.Unix()), Exp: numericDate(now.Add(s.opts.AccessTime).Unix()),
	}
	answer := map[string]any{"token_type": "Bearer", "expires_in": int64(s.opts.AccessTime / time.Second), "scope": claims.Scope}
	if key != "" {
		claims.Cnf = &struct {
			JKT string `json:"jkt,omitempty"`
		}{key}
		answer["token_type"] = "DPoP"
	}
	s.mu.Lock()
	signing := s.keys[0]
	s.mu.Unlock()
	token, err := signJWT(signing.signer, map[string]any{"typ": "at+jwt", "kid": signing.public.Kid}, &claims)
	if err != nil {
		return 0, nil, err
	}
	answer["access_token"] = token
	if renewable {
		refresh := randomText() + randomText()
		value, err := json.Marshal(g)
		if err == nil {
			_, err = s.store.Add(ctx, "refresh "+tokenHash(refresh), value, now.Add(s.opts.RefreshTime))
		}
		if err != nil {
			return 0, nil, err
		}
		answer["refresh_token"] = refresh
	}
	return http.StatusOK, answer, nil
}

// Verify is a BearerOptions.Verify for a resource server in the same process.
func (s *AuthServer) Verify(ctx context.Context, token string) (*TokenInfo, error) {
	t, err := parseJWT(token)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	var keys []webKey
	for _, k := range s.keys {
		if k.until.IsZero() || time.Now().Before(k.until) {
			keys = append(keys, k.public)
		}
	}
	s.mu.Unlock()
	if err := verifyWith(keys, t); err != nil {
		return nil, err
	}
	if err := t.claims.valid(time.Now()); err != nil {
		return nil, err
	}
	if t.claims.Iss != s.opts.Issuer || t.header.Typ != "at+jwt" {
		return nil, errors.New("the token is no access token of this server")
	}
	if gone, err := s.store.Get(ctx, "revoked "+t.claims.Jti); err != nil {
		return nil, &unavailableError{err}
	} else if gone != nil {
		return nil, errors.New("the token was revoked")
	}
	info := &TokenInfo{
		Issuer: t.claims.Iss, Subject: t.claims.Sub, ClientID: t.claims.ClientID, Audience: t.claims.Aud, Scopes: strings.Fields(t.claims.Scope),
		Expires: t.claims.Exp.time(), Claims: t.payload,
	}
	if t.claims.Cnf != nil {
		info.KeyThumbprint = t.claims.Cnf.JKT
	}
	return info, nil
}

// revoke ends a token (RFC 7009): with a refresh token all that came of it.
func (s *AuthServer) revoke(_ http.ResponseWriter, r *http.Request) (int, any, error) {
	f, err := form(r)
	if err != nil {
		return 0, nil, err
	}
	c, err := s.authenticated(r, f)
	if err != nil {
		return 0, nil, err
	}
	ctx, token := r.Context(), f.Get("token")
	if value, err := s.store.Get(ctx, "refresh "+tokenHash(token)); err != nil {
		return 0, nil, err
	} else if value != nil {
		var g grant
		if json.Unmarshal(value, &g) == nil && g.Client == c.ClientID {
			s.store.Take(ctx, "refresh "+tokenHash(token))
			s.end(ctx, g.Family)
		}
		return http.StatusOK, struct{}{}, nil
	}
	if info, err := s.Verify(ctx, token); err == nil && info.ClientID == c.ClientID {
		t, _ := parseJWT(token)
		if _, err := s.store.Add(ctx, "revoked "+t.claims.Jti, []byte{1}, info.Expires.Add(clockSkew)); err != nil {
			return 0, nil, err
		}
	}
	return http.StatusOK, struct{}{}, nil
}

// introspect says what a token is good for, to clients with credentials (RFC
// 7662).
func (s *AuthServer) introspect(_ http.ResponseWriter, r *http.Request) (int, any, error) {
	f, err := form(r)
	if err != nil {
		return 0, nil, err
	}
	c, err := s.authenticated(r, f)
	if err != nil {
		return 0, nil, err
	}
	if c.method() == "none" {
		return 0, nil, oauthErrorf(http.StatusUnauthorized, "invalid_client", "the client has no credentials")
	}
	info, err := s.Verify(r.Context(), f.Get("token"))
	if err != nil {
		return http.StatusOK, map[string]any{"active": false}, nil
	}
	var claims map[string]any
	if err := json.Unmarshal(info.Claims, &claims); err != nil {
		return 0, nil, err
	}
	claims["active"], claims["token_type"] = true, "Bearer"
	if info.KeyThumbprint != "" {
		claims["token_type"] = "DPoP"
	}
	return http.StatusOK, claims, nil
}
