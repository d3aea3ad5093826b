//go:build !mcp_nohttp

package mcp

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/asn1"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// This file is OAuth as all its parties need it, and the resource server: the
// part of an MCP server that asks for tokens (2026-07-28 basic/authorization).

// ---- Documents ------------------------------------------------------------

// ResourceMetadata says of a protected MCP server where its tokens come from
// (RFC 9728). Members that are empty are left out.
type ResourceMetadata struct {
	// Resource is the server's URL, exactly as clients are to name it.
	Resource string `json:"resource"`
	// AuthorizationServers are the issuers whose tokens are accepted; at least
	// one.
	AuthorizationServers []string `json:"authorization_servers,omitempty"`
	// ScopesSupported are the scopes that clients may ask for. offline_access
	// does not belong here.
	ScopesSupported []string `json:"scopes_supported,omitempty"`
	// BearerMethodsSupported is where the token may be; the header only, so nil
	// means ["header"].
	BearerMethodsSupported []string `json:"bearer_methods_supported,omitempty"`
	ResourceName           string   `json:"resource_name,omitempty"`
	ResourceDocumentation  string   `json:"resource_documentation,omitempty"`
	// DPoPSigningAlgValuesSupported and DPoPBoundAccessTokensRequired are about
	// proof of possession (RFC 9449).
	DPoPSigningAlgValuesSupported []string `json:"dpop_signing_alg_values_supported,omitempty"`
	DPoPBoundAccessTokensRequired bool     `json:"dpop_bound_access_tokens_required,omitempty"`
}

// AuthServerMetadata says what an authorization server can do (RFC 8414, and
// OpenID Connect Discovery).
type AuthServerMetadata struct {
	Issuer                                     string   `json:"issuer"`
	AuthorizationEndpoint                      string   `json:"authorization_endpoint,omitempty"`
	TokenEndpoint                              string   `json:"token_endpoint,omitempty"`
	RegistrationEndpoint                       string   `json:"registration_endpoint,omitempty"`
	RevocationEndpoint                         string   `json:"revocation_endpoint,omitempty"`
	IntrospectionEndpoint                      string   `json:"introspection_endpoint,omitempty"`
	JWKSURI                                    string   `json:"jwks_uri,omitempty"`
	ScopesSupported                            []string `json:"scopes_supported,omitempty"`
	ResponseTypesSupported                     []string `json:"response_types_supported,omitempty"`
	GrantTypesSupported                        []string `json:"grant_types_supported,omitempty"`
	TokenEndpointAuthMethodsSupported          []string `json:"token_endpoint_auth_methods_supported,omitempty"`
	TokenEndpointAuthSigningAlgValuesSupported []string `json:"token_endpoint_auth_signing_alg_values_supported,omitempty"`
	CodeChallengeMethodsSupported              []string `json:"code_challenge_methods_supported,omitempty"`
	DPoPSigningAlgValuesSupported              []string `json:"dpop_signing_alg_values_supported,omitempty"`
	AuthorizationGrantProfilesSupported        []string `json:"authorization_grant_profiles_supported,omitempty"`
	// AuthorizationResponseIssParameterSupported: responses name their issuer
	// (RFC 9207).
	AuthorizationResponseIssParameterSupported bool `json:"authorization_response_iss_parameter_supported,omitempty"`
	// ClientIDMetadataDocumentSupported: a client's id may be the URL of its
	// ClientMetadata.
	ClientIDMetadataDocumentSupported bool `json:"client_id_metadata_document_supported,omitempty"`
	// What OpenID Connect wants to see.
	SubjectTypesSupported            []string `json:"subject_types_supported,omitempty"`
	IDTokenSigningAlgValuesSupported []string `json:"id_token_signing_alg_values_supported,omitempty"`
}

// ClientMetadata is what a client says of itself: when it registers (RFC 7591),
// and in the document that its client id is the URL of.
type ClientMetadata struct {
	ClientID                string          `json:"client_id,omitempty"`
	ClientName              string          `json:"client_name,omitempty"`
	ClientURI               string          `json:"client_uri,omitempty"`
	LogoURI                 string          `json:"logo_uri,omitempty"`
	RedirectURIs            []string        `json:"redirect_uris,omitempty"`
	GrantTypes              []string        `json:"grant_types,omitempty"`
	ResponseTypes           []string        `json:"response_types,omitempty"`
	Scope                   string          `json:"scope,omitempty"`
	TokenEndpointAuthMethod string          `json:"token_endpoint_auth_method,omitempty"`
	ApplicationType         string          `json:"application_type,omitempty"` // "native" or "web"
	JWKSURI                 string          `json:"jwks_uri,omitempty"`
	JWKS                    json.RawMessage `json:"jwks,omitempty"`
	DPoPBoundAccessTokens   bool            `json:"dpop_bound_access_tokens,omitempty"`
}

// decodeOAuth reads a document of OAuth: names match exactly, a member given
// twice is refused, null is absent and what is not known ignored.
func decodeOAuth(data []byte, v any) error {
	d := decoder{scanner: scanner{data: bytes.Clone(data)}, args: true}
	if d.peek() != '{' {
		return errors.New("the document is no JSON object")
	}
	return d.decode(v, "the document")
}

// An oauthError is the answer of an endpoint that refused (RFC 6749 § 5.2).
type oauthError struct {
	status            int
	code, description string
}

func (e *oauthError) Error() string {
	text := e.code
	if e.description != "" {
		text += ": " + e.description
	}
	return text
}

func oauthErrorf(status int, code, format string, args ...any) *oauthError {
	return &oauthError{status, code, fmt.Sprintf(format, args...)}
}

// printable returns what may be shown of a text that a peer wrote.
func printable(text string, limit int) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' || r == '"' || r == '\\' {
			return -1
		}
		return r
	}, text)
	return text[:min(len(text), limit)]
}

// ---- Challenges -----------------------------------------------------------

// A challenge is one of WWW-Authenticate; scheme and names are in lower case.
type challenge struct {
	scheme string
	params map[string]string
}

// parseChallenges reads the values of WWW-Authenticate headers (RFC 9110 §
// 11.6.1). What is malformed is left out, and so is a parameter given twice.
func parseChallenges(values []string) (all []challenge) {
	for _, v := range values {
		p := headerParser{v}
		var now *challenge
		for p.next() {
			name := p.token()
			if name == "" { // nothing that could be a challenge
				break
			}
			if p.space(); now != nil && p.take('=') {
				value, ok := p.value()
				if !ok {
					all = all[:len(all)-1]
					break
				}
				if _, twice := now.params[name]; twice {
					value = ""
				}
				now.params[name] = value
				continue
			}
			all = append(all, challenge{name, make(map[string]string)})
			now = &all[len(all)-1]
			p.token68()
		}
	}
	return all
}

// findChallenge returns the first challenge of one of the schemes.
func findChallenge(all []challenge, schemes ...string) (challenge, bool) {
	for _, c := range all {
		if slices.Contains(schemes, c.scheme) {
			return c, true
		}
	}
	return challenge{}, false
}

// A headerParser reads what is left of a header's value.
type headerParser struct{ rest string }

func (p *headerParser) space() { p.rest = strings.TrimLeft(p.rest, " \t") }

func (p *headerParser) take(c byte) bool {
	if p.rest == "" || p.rest[0] != c {
		return false
	}
	p.rest = p.rest[1:]
	p.space()
	return true
}

// next passes over commas and reports whether there is more.
func (p *headerParser) next() bool {
	p.rest = strings.TrimLeft(p.rest, ", \t")
	return p.rest != ""
}

func (p *headerParser) token() string {
	n := strings.IndexFunc(p.rest, func(r rune) bool { return r > '~' || !isToken(string(r)) })
	if n < 0 {
		n = len(p.rest)
	}
	name := strings.ToLower(p.rest[:n])
	p.rest = p.rest[n:]
	return name
}

// token68 passes over what some schemes have instead of parameters.
func (p *headerParser) token68() {
	n := strings.IndexFunc(p.rest, func(r rune) bool { return r > '~' || !isLetterOrDigit(r) && !strings.ContainsRune("-._~+/=", r) })
	if n < 0 {
		n = len(p.rest)
	}
	after := strings.TrimLeft(p.rest[n:], " \t")
	if word := strings.TrimRight(p.rest[:n], "="); word != "" && !strings.Contains(word, "=") && (after == "" || after[0] == ',') {
		p.rest = after
	}
}

// value reads a parameter's value: a token or a quoted string.
func (p *headerParser) value() (string, bool) {
	if p.rest == "" || p.rest[0] != '"' {
		n := strings.IndexAny(p.rest, ", \t\"")
		if n < 0 {
			n = len(p.rest)
		}
		value := p.rest[:n]
		p.rest = p.rest[n:]
		return value, value != ""
	}
	var out strings.Builder
	for i := 1; i < len(p.rest); i++ {
		switch c := p.rest[i]; {
		case c == '"':
			p.rest = p.rest[i+1:]
			return out.String(), true
		case c == '\\' && i+1 < len(p.rest):
			i++
			out.WriteByte(p.rest[i])
		default:
			out.WriteByte(c)
		}
	}
	return "", false
}

// ---- Fetching ---------------------------------------------------------------

// checkURL parses a URL that a peer named: https, or http on a loopback
// address, and nothing that hides secrets or parts of it
// (2026-07-28 basic/authorization § Communication Security).
func checkURL(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	switch {
	case err != nil || u.Host == "" || u.Opaque != "":
		return nil, fmt.Errorf("%q is no absolute URL", printable(raw, 100))
	case u.User != nil || u.Fragment != "":
		return nil, errors.New("the URL must have no user and no fragment")
	case u.Scheme == "https" || u.Scheme == "http" && loopbackHost(u.Host):
		return u, nil
	}
	return nil, fmt.Errorf("%s://%s must be https", printable(u.Scheme, 20), printable(u.Host, 100))
}

// Bounds of what is fetched.
const (
	fetchTime      = 10 * time.Second
	maxFetch       = 256 << 10
	maxFetchHops   = 3
	maxOAuthReply  = 256 << 10
	maxTokenLength = 32 << 10
)

// A fetcher gets documents whose URL a peer named. It goes to no private
// address, unless the peer is itself on a loopback address, and sends no
// credentials (2026-07-28 basic/security-best-practices § SSRF).
type fetcher struct {
	client *http.Client // nil: one of its own
	header http.Header
	local  bool // a loopback address is as good as any: the one who names it is there, too
}

// check is checkURL, with what the fetcher may reach.
func (f *fetcher) check(raw string) (*url.URL, error) {
	u, err := checkURL(raw)
	if err == nil && !f.local && loopbackHost(u.Host) {
		err = fmt.Errorf("%s is a loopback address, and who names it is not there", printable(u.Host, 100))
	}
	return u, err
}

// isLocal reports whether a URL is on a loopback address.
func isLocal(raw string) bool {
	u, err := url.Parse(raw)
	return err == nil && loopbackHost(u.Host)
}

var guarded struct { // made when it is needed, so that programs without OAuth do not hold it
	once   sync.Once
	client *http.Client
}

// notPublic are ranges beyond those that netip knows which are inside
// somebody's network, or wrap an address that may be (RFC 6890).
var notPublic = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),
	netip.MustParsePrefix("100.64.0.0/10"), // behind a carrier's NAT; some clouds have their metadata here
	netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("198.18.0.0/15"),
	netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("::/96"),
	netip.MustParsePrefix("64:ff9b:1::/48"),
	netip.MustParsePrefix("2001::/32"),
	netip.MustParsePrefix("2002::/16"),
	netip.MustParsePrefix("fec0::/10"),
}

var translated = netip.MustParsePrefix("64:ff9b::/96") // an IPv4 address as networks with IPv6 alone reach it

// publicAddress reports whether an address is one of the public internet.
func publicAddress(ip netip.Addr) bool {
	ip = ip.Unmap().WithZone("")
	if translated.Contains(ip) {
		b := ip.As16()
		ip = netip.AddrFrom4([4]byte(b[12:]))
	}
	return ip.IsGlobalUnicast() && !ip.IsPrivate() && !slices.ContainsFunc(notPublic, func(p netip.Prefix) bool { return p.Contains(ip) })
}

// guardedClient returns a client that reaches public addresses only.
func guardedClient() *http.Client {
	guarded.once.Do(func() {
		dialer := &net.Dialer{Timeout: fetchTime, Control: func(_, address string, _ syscall.RawConn) error {
			a, err := netip.ParseAddrPort(address)
			if err != nil || !publicAddress(a.Addr()) {
				return errors.New("the address is not public")
			}
			return nil
		}}
		guarded.client = &http.Client{Transport: &http.Transport{DialContext: dialer.DialContext, TLSHandshakeTimeout: fetchTime, MaxIdleConns: 4, IdleConnTimeout: 10 * time.Second}}
	})
	return guarded.client
}

// clientFor returns what to fetch a URL with: a client of its own cannot reach
// what is private, but for the loopback address of a server under development.
func (f *fetcher) clientFor(u *url.URL) http.Client {
	var c http.Client
	switch {
	case f.client != nil:
		c = *f.client
	case f.local && loopbackHost(u.Host):
		c = *http.DefaultClient
	default:
		c = *guardedClient()
	}
	c.Jar = nil
	c.CheckRedirect = func(r *http.Request, via []*http.Request) error {
		if len(via) > maxFetchHops {
			return errors.New("too many redirects")
		}
		_, err := f.check(r.URL.String())
		return err
	}
	return c
}

// get fetches a document. Any answer is one; err says why there is none.
func (f *fetcher) get(ctx context.Context, from string) (status int, header http.Header, body []byte, err error) {
	u, err := f.check(from)
	if err != nil {
		return 0, nil, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return 0, nil, nil, err
	}
	for name, values := range f.header {
		r.Header[name] = values
	}
	r.Header.Set("Accept", "application/json")
	c := f.clientFor(u)
	response, err := c.Do(r)
	if err != nil {
		return 0, nil, nil, failedRequest("GET", u, err)
	}
	defer response.Body.Close()
	body, err = io.ReadAll(io.LimitReader(response.Body, maxFetch+1))
	if err == nil && len(body) > maxFetch {
		err = fmt.Errorf("the document of %s is longer than %d bytes", u.Host, maxFetch)
	}
	return response.StatusCode, response.Header, body, err
}

// document fetches a JSON object into v.
func (f *fetcher) document(ctx context.Context, from string, v any) error {
	status, _, body, err := f.get(ctx, from)
	switch {
	case err != nil:
		return err
	case status != http.StatusOK:
		return fmt.Errorf("status %d", status)
	}
	return decodeOAuth(body, v)
}

// sameSecret compares in a time that tells nothing.
func sameSecret(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

// ---- Keys and signed tokens ---------------------------------------------------

// signingAlgs are the signatures that are known here; none of them can be
// verified with a secret.
var signingAlgs = []string{"ES256", "EdDSA", "RS256"}

// A webKey is a public key (RFC 7517).
type webKey struct {
	Kty string `json:"kty"`
	Crv string `json:"crv,omitempty"`
	X   string `json:"x,omitempty"`
	Y   string `json:"y,omitempty"`
	N   string `json:"n,omitempty"`
	E   string `json:"e,omitempty"`
	Kid string `json:"kid,omitempty"`
	Use string `json:"use,omitempty"`
	Alg string `json:"alg,omitempty"`
	D   string `json:"d,omitempty"` // private: refused where a public key belongs
}

// webKeyOf returns the JWK of a public key, named by its thumbprint.
func webKeyOf(public crypto.PublicKey) (k webKey, err error) {
	text := base64.RawURLEncoding.EncodeToString
	switch public := public.(type) {
	case *ecdsa.PublicKey:
		point, err := public.ECDH()
		if err != nil || public.Curve != elliptic.P256() {
			return k, errors.New("an ECDSA key must be on P-256")
		}
		xy := point.Bytes()[1:]
		k = webKey{Kty: "EC", Crv: "P-256", X: text(xy[:32]), Y: text(xy[32:]), Alg: "ES256"}
	case ed25519.PublicKey:
		k = webKey{Kty: "OKP", Crv: "Ed25519", X: text(public), Alg: "EdDSA"}
	case *rsa.PublicKey:
		k = webKey{Kty: "RSA", N: text(public.N.Bytes()), E: text(big.NewInt(int64(public.E)).Bytes()), Alg: "RS256"}
	default:
		return k, fmt.Errorf("a key of type %T signs nothing that is known here", public)
	}
	k.Kid, k.Use = k.thumbprint(), "sig"
	return k, nil
}

// thumbprint is the hash of what makes the key (RFC 7638).
func (k *webKey) thumbprint() string {
	var text string
	switch k.Kty {
	case "EC":
		text = fmt.Sprintf(`{"crv":%q,"kty":"EC","x":%q,"y":%q}`, k.Crv, k.X, k.Y)
	case "OKP":
		text = fmt.Sprintf(`{"crv":%q,"kty":"OKP","x":%q}`, k.Crv, k.X)
	default:
		text = fmt.Sprintf(`{"e":%q,"kty":"RSA","n":%q}`, k.E, k.N)
	}
	sum := sha256.Sum256([]byte(text))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// public returns the key, and the one algorithm it is good for.
func (k *webKey) public() (key crypto.PublicKey, alg string, err error) {
	bad := errors.New("the key is malformed, or of a kind that is not known here")
	raw := func(text string, size int) []byte {
		b, err := base64.RawURLEncoding.Strict().DecodeString(text)
		if err != nil || size > 0 && len(b) != size {
			return nil
		}
		return b
	}
	switch {
	case k.D != "":
		return nil, "", errors.New("the key is a private one")
	case k.Kty == "EC" && k.Crv == "P-256":
		x, y := raw(k.X, 32), raw(k.Y, 32)
		p := &ecdsa.PublicKey{Curve: elliptic.P256(), X: new(big.Int).SetBytes(x), Y: new(big.Int).SetBytes(y)}
		if _, err := p.ECDH(); err != nil || x == nil || y == nil {
			return nil, "", bad
		}
		key, alg = p, "ES256"
	case k.Kty == "OKP" && k.Crv == "Ed25519":
		x := raw(k.X, ed25519.PublicKeySize)
		if x == nil {
			return nil, "", bad
		}
		key, alg = ed25519.PublicKey(x), "EdDSA"
	case k.Kty == "RSA":
		n, e := raw(k.N, 0), raw(k.E, 0)
		if len(n) < 256 || len(n) > 1024 || len(e) == 0 || len(e) > 4 {
			return nil, "", errors.New("an RSA key must have from 2048 to 8192 bits")
		}
		key, alg = &rsa.PublicKey{N: new(big.Int).SetBytes(n), E: int(new(big.Int).SetBytes(e).Int64())}, "RS256"
	default:
		return nil, "", bad
	}
	if k.Alg != "" && k.Alg != alg || k.Use != "" && k.Use != "sig" {
		return nil, "", errors.New("the key is not for signatures that are known here")
	}
	return key, alg, nil
}

// parseKeySet reads a JWKS and leaves out what is of no use here.
func parseKeySet(data []byte) (keys []webKey, err error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := decodeOAuth(data, &set); err != nil {
		return nil, err
	}
	for _, raw := range set.Keys {
		var k webKey
		if len(keys) < 100 && decodeOAuth(raw, &k) == nil {
			if _, _, err := k.public(); err == nil {
				keys = append(keys, k)
			}
		}
	}
	if len(keys) == 0 {
		return nil, errors.New("the key set has no usable key")
	}
	return keys, nil
}

// signJWT signs claims with a key on P-256, an Ed25519 or an RSA key. header
// gets alg.
func signJWT(key crypto.Signer, header map[string]any, claims any) (string, error) {
	k, err := webKeyOf(key.Public())
	if err != nil {
		return "", err
	}
	header["alg"] = k.Alg
	h, err := json.Marshal(header)
	if err != nil {
		return "", err
	}
	c, err := json.Marshal(claims)
	if err != nil {
		return "", err
	}
	text := base64.RawURLEncoding.EncodeToString
	signed := text(h) + "." + text(c)
	digest, opts := []byte(signed), crypto.SignerOpts(crypto.Hash(0))
	if k.Alg != "EdDSA" {
		sum := sha256.Sum256(digest)
		digest, opts = sum[:], crypto.SHA256
	}
	signature, err := key.Sign(rand.Reader, digest, opts)
	if err != nil {
		return "", errors.New("the key cannot sign")
	}
	if k.Alg == "ES256" { // two numbers, not ASN.1 (RFC 7518 § 3.4)
		var rs struct{ R, S *big.Int }
		if _, err := asn1.Unmarshal(signature, &rs); err != nil {
			return "", errors.New("the key cannot sign")
		}
		signature = make([]byte, 64)
		rs.R.FillBytes(signature[:32])
		rs.S.FillBytes(signature[32:])
	}
	return signed + "." + text(signature), nil
}

// A jwt is a signed token (RFC 7519) that has been read and not been believed.
type jwt struct {
	header struct {
		Alg  string          `json:"alg"`
		Typ  string          `json:"typ"`
		Kid  string          `json:"kid"`
		JWK  json.RawMessage `json:"jwk"` // for proofs of possession only
		Crit json.RawMessage `json:"crit"`
	}
	claims    jwtClaims
	payload   json.RawMessage
	signed    string
	signature []byte
}

type jwtClaims struct {
	Iss      string      `json:"iss,omitempty"`
	Sub      string      `json:"sub,omitempty"`
	Aud      stringOrSet `json:"aud,omitempty"`
	Exp      numericDate `json:"exp,omitempty"`
	Nbf      numericDate `json:"nbf,omitempty"`
	Iat      numericDate `json:"iat,omitempty"`
	Jti      string      `json:"jti,omitempty"`
	Scope    string      `json:"scope,omitempty"`
	ClientID string      `json:"client_id,omitempty"`
	Resource stringOrSet `json:"resource,omitempty"`
	Cnf      *struct {
		JKT string `json:"jkt,omitempty"`
	} `json:"cnf,omitempty"`
	Htm   string `json:"htm,omitempty"`
	Htu   string `json:"htu,omitempty"`
	Ath   string `json:"ath,omitempty"`
	Nonce string `json:"nonce,omitempty"`
}

// A stringOrSet is a string, or several.
type stringOrSet []string

func (s *stringOrSet) UnmarshalJSON(data []byte) error {
	if data[0] == '"' {
		var one string
		err := json.Unmarshal(data, &one)
		*s = stringOrSet{one}
		return err
	}
	return json.Unmarshal(data, (*[]string)(s))
}

func (s stringOrSet) MarshalJSON() ([]byte, error) {
	if len(s) == 1 {
		return json.Marshal(s[0])
	}
	return json.Marshal([]string(s))
}

// A numericDate is a time in seconds since 1970, a JSON number.
type numericDate int64

func (n *numericDate) UnmarshalJSON(data []byte) error {
	f, err := strconv.ParseFloat(string(data), 64)
	if err != nil || f < 0 || f > 1<<40 {
		return errors.New("must be a number of seconds")
	}
	*n = numericDate(f)
	return nil
}

func (n numericDate) time() time.Time { return time.Unix(int64(n), 0) }

// parseJWT reads a token without believing it.
func parseJWT(token string) (*jwt, error) {
	parts := strings.Split(token, ".")
	if len(token) > maxTokenLength || len(parts) != 3 {
		return nil, errors.New("the token is no signed JWT")
	}
	var raw [3][]byte
	for i, part := range parts {
		var err error
		if raw[i], err = base64.RawURLEncoding.Strict().DecodeString(part); err != nil {
			return nil, errors.New("the token is not base64url without padding")
		}
	}
	t := &jwt{payload: raw[1], signed: parts[0] + "." + parts[1], signature: raw[2]}
	if err := decodeOAuth(raw[0], &t.header); err != nil {
		return nil, errors.New("the token's header is malformed")
	}
	if validJSON(raw[1]) != nil || repeatedMember(raw[1]) != nil || decodeOAuth(raw[1], &t.claims) != nil {
		return nil, errors.New("the token's claims are malformed")
	}
	if t.header.Crit != nil {
		return nil, errors.New("the token needs an extension that is not known here")
	}
	return t, nil
}

// verify checks the signature with a key whose algorithm is known beforehand:
// what the token says of itself is only compared.
func (t *jwt) verify(key crypto.PublicKey, alg string) error {
	if t.header.Alg != alg {
		return errors.New("the token's algorithm is not that of the key")
	}
	ok := false
	sum := sha256.Sum256([]byte(t.signed))
	switch key := key.(type) {
	case *ecdsa.PublicKey:
		if len(t.signature) == 64 {
			ok = ecdsa.Verify(key, sum[:], new(big.Int).SetBytes(t.signature[:32]), new(big.Int).SetBytes(t.signature[32:]))
		}
	case ed25519.PublicKey:
		ok = ed25519.Verify(key, []byte(t.signed), t.signature)
	case *rsa.PublicKey:
		ok = rsa.VerifyPKCS1v15(key, crypto.SHA256, sum[:], t.signature) == nil
	}
	if !ok {
		return errors.New("the token's signature is wrong")
	}
	return nil
}

// clockSkew is how far the clocks of two parties may be apart.
const clockSkew = 30 * time.Second

// valid checks the times of a token. One without an end is not valid.
func (c *jwtClaims) valid(now time.Time) error {
	switch {
	case c.Exp == 0 || !now.Before(c.Exp.time().Add(clockSkew)):
		return errors.New("the token has expired")
	case c.Nbf != 0 && now.Add(clockSkew).Before(c.Nbf.time()):
		return errors.New("the token is not valid yet")
	}
	return nil
}

// A keySource knows the keys of an issuer, by the URL of its JWKS. They are
// fetched again after an hour, and for a key that is not known, at most once a
// minute.
type keySource struct {
	url   string
	fetch fetcher

	mu      sync.Mutex
	keys    []webKey
	fetched time.Time // the last success
	tried   time.Time
	flight  chan struct{} // closed when a fetch has ended
}

// An unavailableError is why a token could not be judged.
type unavailableError struct{ err error }

func (e *unavailableError) Error() string { return "the token cannot be checked now: " + e.err.Error() }
func (e *unavailableError) Unwrap() error { return e.err }

// find returns the keys that a token may have been signed with.
func (s *keySource) find(kid string) []webKey {
	var found []webKey
	for _, k := range s.keys {
		if kid == "" || k.Kid == kid {
			found = append(found, k)
		}
	}
	return found
}

// candidates is find, after a fetch where one is due.
func (s *keySource) candidates(ctx context.Context, kid string) ([]webKey, error) {
	for {
		s.mu.Lock()
		found := s.find(kid)
		fresh := time.Since(s.fetched) < time.Hour
		switch {
		case len(found) > 0 && fresh:
			s.mu.Unlock()
			return found, nil
		case s.flight == nil && time.Since(s.tried) < time.Minute:
			fetched := !s.fetched.IsZero()
			s.mu.Unlock()
			if !fetched {
				return nil, &unavailableError{errors.New("the keys of the issuer could not be fetched")}
			}
			return found, nil
		case s.flight == nil:
			s.flight = make(chan struct{})
			go s.refresh()
		}
		flight := s.flight
		s.mu.Unlock()
		select {
		case <-flight:
		case <-ctx.Done():
			return nil, &unavailableError{ctx.Err()}
		}
	}
}

func (s *keySource) refresh() {
	ctx, cancel := context.WithTimeout(context.Background(), fetchTime)
	defer cancel()
	status, _, body, err := s.fetch.get(ctx, s.url)
	var keys []webKey
	if err == nil && status == http.StatusOK {
		keys, _ = parseKeySet(body)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tried = time.Now(); keys != nil {
		s.keys, s.fetched = keys, s.tried
	}
	close(s.flight)
	s.flight = nil
}

// verify checks a token's signature with the issuer's keys.
func (s *keySource) verify(ctx context.Context, t *jwt) error {
	if !slices.Contains(signingAlgs, t.header.Alg) {
		return fmt.Errorf("the token's algorithm is none of %s", strings.Join(signingAlgs, ", "))
	}
	keys, err := s.candidates(ctx, t.header.Kid)
	if err != nil {
		return err
	}
	err = errors.New("the token's key is not known")
	for _, k := range keys {
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

// ---- Proof of possession --------------------------------------------------------

// proofURL is the form in which a proof names a request (RFC 9449 § 4.2).
func proofURL(u *url.URL) string {
	v := url.URL{Scheme: strings.ToLower(u.Scheme), Host: strings.ToLower(u.Host), Path: u.Path, RawPath: u.RawPath}
	if port := v.Port(); v.Scheme == "https" && port == "443" || v.Scheme == "http" && port == "80" {
		v.Host = strings.TrimSuffix(v.Host, ":"+port)
	}
	if v.Path == "" {
		v.Path = "/"
	}
	return v.String()
}

// tokenHash is how a proof names the access token that it goes with.
func tokenHash(token string) string {
	sum := sha256.Sum256([]byte(token))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// signProof makes a proof for one request (RFC 9449 § 4.2). There may be no
// token, and no nonce.
func signProof(key crypto.Signer, method string, to *url.URL, token, nonce string) (string, error) {
	public, err := webKeyOf(key.Public())
	if err != nil {
		return "", err
	}
	public.Kid, public.Use, public.Alg = "", "", ""
	claims := jwtClaims{Jti: randomText(), Htm: method, Htu: proofURL(to), Iat: numericDate(time.Now().Unix()), Nonce: nonce}
	if token != "" {
		claims.Ath = tokenHash(token)
	}
	return signJWT(key, map[string]any{"typ": "dpop+jwt", "jwk": public}, &claims)
}

// proofTime is how old a proof may be, and how far ahead its clock.
const proofTime = 5 * time.Minute

// maxProofs is how many proofs are remembered, and maxProofsOfKey how many of
// one key. Beyond it none is taken until some are too old.
const (
	maxProofs      = 100000
	maxProofsOfKey = 10000
)

// A proofChecker checks proofs, each of which is good once.
type proofChecker struct {
	mu    sync.Mutex
	seen  [2]map[[32]byte]bool // in this period, and the one before
	of    map[string]int       // how many in this period, by key
	since time.Time
}

// check checks the proof in a request's header (RFC 9449 § 4.3) and returns
// the thumbprint of its key: the one that is wanted, unless that is "".
func (c *proofChecker) check(r *http.Request, at *url.URL, token, nonce, wanted string) (string, error) {
	proofs := r.Header["Dpop"]
	if len(proofs) != 1 {
		return "", errors.New("there must be one DPoP header")
	}
	t, err := parseJWT(proofs[0])
	if err != nil {
		return "", err
	}
	var k webKey
	if t.header.Typ != "dpop+jwt" || decodeOAuth(t.header.JWK, &k) != nil {
		return "", errors.New("the proof must be of type dpop+jwt and have a jwk")
	}
	key, alg, err := k.public()
	if err == nil {
		err = t.verify(key, alg)
	}
	if err != nil {
		return "", err
	}
	age := time.Since(t.claims.Iat.time())
	named, err := url.Parse(t.claims.Htu)
	switch {
	case t.claims.Htm != r.Method || err != nil || proofURL(named) != proofURL(at):
		return "", errors.New("the proof is for another request")
	case t.claims.Iat == 0 || age > proofTime || age < -proofTime:
		return "", errors.New("the proof is too old, or its clock is wrong")
	case token != "" && t.claims.Ath != tokenHash(token):
		return "", errors.New("the proof is for another token")
	case nonce != "" && t.claims.Nonce != nonce:
		return "", errNonce
	case wanted != "" && k.thumbprint() != wanted:
		return "", errors.New("the proof is of another key")
	case t.claims.Jti == "" || len(t.claims.Jti) > 256 || !c.spend(k.thumbprint(), t.claims.Jti):
		return "", errors.New("the proof has been used before")
	}
	return k.thumbprint(), nil
}

var errNonce = errors.New("the proof needs the nonce in DPoP-Nonce")

// spend notes that a proof was used and reports whether it was not before.
func (c *proofChecker) spend(key, id string) bool {
	sum := sha256.Sum256([]byte(key + " " + id))
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); c.seen[0] == nil || now.Sub(c.since) > 2*proofTime {
		if now.Sub(c.since) > 4*proofTime {
			c.seen[0] = nil
		}
		c.seen[1], c.seen[0], c.since = c.seen[0], make(map[[32]byte]bool), now
		c.of = make(map[string]int)
	}
	if c.seen[0][sum] || c.seen[1][sum] || len(c.seen[0])+len(c.seen[1]) >= maxProofs || c.of[key] >= maxProofsOfKey {
		return false
	}
	c.of[key]++
	c.seen[0][sum] = true
	return true
}

// ---- The resource server ----------------------------------------------------------

// TokenInfo is what a verified access token says.
type TokenInfo struct {
	Issuer   string
	Subject  string   // who the token speaks for
	ClientID string   // the client that it was given to
	Audience []string // the resources that it is for
	Scopes   []string
	Expires  time.Time // zero if that is not known
	// KeyThumbprint, if not empty, is that of the key whose possession whoever
	// sends the token must prove (RFC 9449).
	KeyThumbprint string
	// Claims is the JWT's payload, or the introspection's answer.
	Claims json.RawMessage
}

// principal names who the token speaks for.
func (i *TokenInfo) principal() string {
	text, _ := json.Marshal([]string{i.Issuer, i.Subject, i.ClientID})
	return string(text)
}

type tokenInfoKey struct{}

// TokenInfoFrom returns what the token of an HTTP request says, within
// RequireBearer and within the handlers of a server behind it; nil otherwise.
func TokenInfoFrom(ctx context.Context) *TokenInfo {
	info, _ := ctx.Value(tokenInfoKey{}).(*TokenInfo)
	return info
}

// TokenInfo returns what the token of the request's HTTP request says; nil if
// there was none.
func (r *Request) TokenInfo() *TokenInfo {
	return TokenInfoFrom((*requestContext)(r))
}

// BearerOptions say what RequireBearer asks for.
type BearerOptions struct {
	// Resource is the server's own URL, such as "https://host.example/mcp":
	// tokens must be for it. It must be set.
	Resource string
	// Verify checks a token. It must be set; see JWTVerifier and
	// IntrospectionVerifier. It is not asked about the audience, the scopes and
	// the expiry: those are compared with what it returns.
	Verify func(ctx context.Context, token string) (*TokenInfo, error)
	// Scopes are those that every request needs; see RequireScopes for those
	// of single tools.
	Scopes []string
	// Implies reports whether a scope that a token has is as good as one that
	// is wanted; nil means that only equal ones are.
	Implies func(has, wanted string) bool
	// MetadataURL is where the ResourceMetadata is; "" means the well-known
	// place of Resource.
	MetadataURL string
	// ProofRequired refuses tokens without proof of possession.
	ProofRequired bool
	// Logger gets why tokens were refused. nil logs nothing.
	Logger *slog.Logger
}

// bearer is RequireBearer at work.
type bearer struct {
	BearerOptions
	next   http.Handler
	proofs proofChecker
	log    *slog.Logger
}

type bearerKey struct{}

// RequireBearer returns middleware that lets through only requests with an
// access token for this resource, in the Authorization header
// (2026-07-28 basic/authorization § Access Token Usage). Others get 401, or 403
// when scopes are missing, with a challenge that says where tokens come from.
// The sessions and the sealed state of an [HTTPHandler] behind it belong to who
// the token speaks for, unless HTTPOptions.Principal says otherwise. It panics
// if Resource or Verify is missing.
func RequireBearer(opts BearerOptions) func(http.Handler) http.Handler {
	u, err := checkURL(opts.Resource)
	if err != nil || opts.Verify == nil {
		panic("mcp: RequireBearer needs Verify, and the https URL of the server as Resource")
	}
	if opts.MetadataURL == "" {
		opts.MetadataURL = wellKnown(u, "oauth-protected-resource").String()
	}
	log := opts.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return func(next http.Handler) http.Handler { return &bearer{BearerOptions: opts, next: next, log: log} }
}

// wellKnown puts a well-known name between the host of a URL and its path (RFC
// 8615, RFC 8414 § 3.1).
func wellKnown(u *url.URL, name string) *url.URL {
	path := strings.TrimSuffix(u.EscapedPath(), "/")
	to, _ := url.Parse(u.Scheme + "://" + u.Host + "/.well-known/" + name + path)
	to.RawQuery = u.RawQuery
	return to
}

func (b *bearer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != "" {
		b.next.ServeHTTP(w, r) // a browser asks before it sends credentials
		return
	}
	token, scheme, problem := credentials(r.Header["Authorization"])
	if problem != "" {
		b.challenge(w, http.StatusBadRequest, scheme, "invalid_request", problem, nil)
		return
	}
	if token == "" {
		b.challenge(w, http.StatusUnauthorized, scheme, "", "", b.Scopes)
		return
	}
	info, err := b.verify(r, token, scheme)
	var unavailable *unavailableError
	switch {
	case errors.As(err, &unavailable):
		b.log.Warn("mcp: a token could not be checked", "error", err)
		w.Header().Set("Retry-After", "5")
		http.Error(w, "the token cannot be checked now", http.StatusServiceUnavailable)
		return
	case err != nil:
		b.log.Info("mcp: a token was refused", "error", err)
		code := "invalid_token"
		if scheme == "dpop" && errors.Is(err, errProof) {
			code = "invalid_dpop_proof"
		}
		b.challenge(w, http.StatusUnauthorized, scheme, code, err.Error(), b.Scopes)
		return
	}
	ctx := context.WithValue(r.Context(), tokenInfoKey{}, info)
	ctx = context.WithValue(ctx, principalKey{}, info.principal())
	ctx = context.WithValue(ctx, bearerKey{}, b)
	if missing := b.missing(info, b.Scopes); len(missing) > 0 {
		b.challenge(w, http.StatusForbidden, scheme, "insufficient_scope", "", b.Scopes)
		return
	}
	b.next.ServeHTTP(w, r.WithContext(ctx))
}

// credentials reads the Authorization headers of a request. There is no token
// where another scheme is used, and a problem where the syntax is wrong.
func credentials(headers []string) (token, scheme, problem string) {
	if len(headers) == 0 {
		return "", "bearer", ""
	}
	scheme, token, _ = strings.Cut(headers[0], " ")
	scheme = strings.ToLower(scheme)
	if scheme != "bearer" && scheme != "dpop" {
		return "", "bearer", ""
	}
	token = strings.Trim(token, " ")
	odd := strings.IndexFunc(strings.TrimRight(token, "="), func(r rune) bool {
		return r > '~' || !isLetterOrDigit(r) && !strings.ContainsRune("-._~+/", r)
	})
	switch {
	case len(headers) > 1:
		return "", scheme, "there must be one Authorization header"
	case token == "" || odd >= 0 || len(token) > maxTokenLength:
		return "", scheme, "the token is malformed"
	}
	return token, scheme, ""
}

var (
	errProof     = errors.New("the proof of possession is wrong")
	errNotForUs  = errors.New("the token is not for this resource")
	errExpired   = errors.New("the token has expired")
	errNotTaken  = errors.New("the token is not valid")
	errUnbounded = errors.New("the token needs no proof of possession, which is wanted here")
)

// verify judges a token. What it returns is shown to who sent it.
func (b *bearer) verify(r *http.Request, token, scheme string) (info *TokenInfo, err error) {
	defer func() {
		if p := recover(); p != nil {
			b.log.Error("mcp: panic in Verify", "panic", p)
			info, err = nil, errNotTaken
		}
	}()
	info, err = b.Verify(r.Context(), token)
	var unavailable *unavailableError
	switch {
	case errors.As(err, &unavailable):
		return nil, err
	case err != nil || info == nil:
		b.log.Info("mcp: a token was refused", "error", err)
		return nil, errNotTaken
	case !info.Expires.IsZero() && !time.Now().Before(info.Expires):
		return nil, errExpired
	case !slices.ContainsFunc(info.Audience, func(a string) bool { return sameResource(a, b.Resource) }):
		return nil, errNotForUs
	case info.KeyThumbprint == "" && (b.ProofRequired || scheme == "dpop"):
		return nil, errUnbounded
	case info.KeyThumbprint == "":
		return info, nil
	case scheme != "dpop":
		return nil, errProof
	}
	at, _ := url.Parse(b.Resource)
	if _, err := b.proofs.check(r, at, token, "", info.KeyThumbprint); err != nil {
		return nil, fmt.Errorf("%w: %w", errProof, err)
	}
	return info, nil
}

// sameResource compares resource identifiers: as they are, but for the case of
// scheme and host and for the slash of an empty path
// (2026-07-28 basic/authorization § Canonical Server URI).
func sameResource(a, b string) bool {
	return a == b || canonicalResource(a) == canonicalResource(b) && canonicalResource(a) != ""
}

func canonicalResource(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || u.User != nil || u.Fragment != "" {
		return ""
	}
	u.Scheme, u.Host = strings.ToLower(u.Scheme), strings.ToLower(u.Host)
	path := u.EscapedPath()
	if path == "/" {
		path = ""
	}
	text := u.Scheme + "://" + u.Host + path
	if u.RawQuery != "" {
		text += "?" + u.RawQuery
	}
	return text
}

// missing returns the scopes of those wanted that a token does not have.
func (b *bearer) missing(info *TokenInfo, wanted []string) []string {
	var missing []string
	for _, w := range wanted {
		if !slices.ContainsFunc(info.Scopes, func(has string) bool { return has == w || b.Implies != nil && b.Implies(has, w) }) {
			missing = append(missing, w)
		}
	}
	return missing
}

// challenge refuses a request (RFC 6750 § 3).
func (b *bearer) challenge(w http.ResponseWriter, status int, scheme, code, description string, scopes []string) {
	w.Header().Set("WWW-Authenticate", b.challengeText(scheme, code, description, scopes))
	text := http.StatusText(status)
	if description != "" {
		text = description
	}
	http.Error(w, text, status)
}

func (b *bearer) challengeText(scheme, code, description string, scopes []string) string {
	name := "Bearer"
	if scheme == "dpop" || b.ProofRequired {
		name = "DPoP"
	}
	var params []string
	add := func(key, value string) {
		if value != "" {
			params = append(params, key+`="`+printable(value, 1000)+`"`)
		}
	}
	add("error", code)
	add("error_description", description)
	add("scope", strings.Join(scopes, " "))
	if name == "DPoP" {
		add("algs", strings.Join(signingAlgs, " "))
	}
	add("resource_metadata", b.MetadataURL)
	return name + " " + strings.Join(params, ", ")
}

// RequireScopes returns middleware for [Server.Use] that lets a request through
// only if its token has the scopes that needed returns for it; nil is none.
// Otherwise the client gets 403 with a challenge that names all scopes of the
// operation (2026-07-28 basic/authorization § Runtime Insufficient Scope
// Errors). A request that came without RequireBearer has no scopes.
func RequireScopes(needed func(req *Request) []string) Middleware {
	return func(next Handler) Handler {
		return func(ctx context.Context, req *Request) (any, error) {
			wanted := needed(req)
			if len(wanted) == 0 {
				return next(ctx, req)
			}
			b, _ := ctx.Value(bearerKey{}).(*bearer)
			info := req.TokenInfo()
			if b == nil || info == nil {
				return nil, Errorf(CodeInvalidRequest, "the request needs a token with the scopes %s", strings.Join(wanted, " "))
			}
			if len(b.missing(info, wanted)) == 0 {
				return next(ctx, req)
			}
			all := slices.Clone(b.Scopes)
			for _, scope := range wanted {
				if !slices.Contains(all, scope) {
					all = append(all, scope)
				}
			}
			scheme := "bearer"
			if info.KeyThumbprint != "" {
				scheme = "dpop"
			}
			if ps, ok := req.out.(*postStream); ok {
				ps.refuseWith(http.StatusForbidden, b.challengeText(scheme, "insufficient_scope", "", all))
			}
			return nil, Errorf(CodeInvalidRequest, "the request needs a token with the scopes %s", strings.Join(all, " "))
		}
	}
}

// ResourceMetadataHandler serves m where clients look for it: at
// /.well-known/oauth-protected-resource, alone and followed by the path of
// m.Resource, to pages of all origins. Mount it at both, with a pattern that
// ends in a slash for the second. It panics if m has no Resource or no
// authorization server.
func ResourceMetadataHandler(m ResourceMetadata) http.Handler {
	u, err := checkURL(m.Resource)
	if err != nil || len(m.AuthorizationServers) == 0 {
		panic("mcp: ResourceMetadata needs the https URL of the server as Resource, and an authorization server")
	}
	if m.BearerMethodsSupported == nil {
		m.BearerMethodsSupported = []string{"header"}
	}
	body, _ := json.Marshal(&m)
	places := []string{"/.well-known/oauth-protected-resource", wellKnown(u, "oauth-protected-resource").Path}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !slices.Contains(places, strings.TrimSuffix(r.URL.Path, "/")) {
			http.NotFound(w, r)
			return
		}
		serveDocument(w, r, body)
	})
}

// serveDocument serves JSON that anybody may read.
func serveDocument(w http.ResponseWriter, r *http.Request, body []byte) {
	if !openToPages(w, r, "GET") {
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "max-age=300")
	if r.Method != http.MethodHead {
		w.Write(body)
	}
}

// openToPages lets pages of all origins use what takes one method and no
// cookies. It reports whether the request is to be served.
func openToPages(w http.ResponseWriter, r *http.Request, method string) bool {
	header := w.Header()
	header.Set("Access-Control-Allow-Origin", "*")
	switch r.Method {
	case method:
		return true
	case http.MethodHead:
		if method == http.MethodGet {
			return true
		}
	case http.MethodOptions:
		header.Set("Access-Control-Allow-Methods", method)
		header.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, DPoP, Mcp-Protocol-Version")
		header.Set("Access-Control-Expose-Headers", "DPoP-Nonce, WWW-Authenticate")
		w.WriteHeader(http.StatusNoContent)
		return false
	}
	methodNotAllowed(w, method+", OPTIONS")
	return false
}

// JWTOptions say whose tokens a JWTVerifier takes.
type JWTOptions struct {
	// Issuer is the authorization server, exactly as its tokens name it. It
	// must be set.
	Issuer string
	// JWKSURL is where its keys are; "" means that its metadata says so.
	JWKSURL string
	// Client fetches the keys; nil means one that reaches public addresses
	// only, unless the URL is one of a loopback address.
	Client *http.Client
}

// JWTVerifier returns a BearerOptions.Verify for access tokens that are signed
// JWTs (RFC 9068): with RS256, ES256 or EdDSA, by a key of the issuer. Keys are
// kept for an hour.
func JWTVerifier(opts JWTOptions) func(ctx context.Context, token string) (*TokenInfo, error) {
	v := &jwtVerifier{opts: opts, keys: keySource{url: opts.JWKSURL, fetch: fetcher{client: opts.Client, local: isLocal(opts.JWKSURL) || isLocal(opts.Issuer)}}}
	return v.verify
}

type jwtVerifier struct {
	opts   JWTOptions
	mu     sync.Mutex
	keys   keySource
	failed error // why the keys could not be found, for a minute
	tried  time.Time
}

func (v *jwtVerifier) verify(ctx context.Context, token string) (*TokenInfo, error) {
	t, err := parseJWT(token)
	if err != nil {
		return nil, err
	}
	typ := strings.TrimPrefix(strings.ToLower(t.header.Typ), "application/")
	switch {
	case v.opts.Issuer == "" || t.claims.Iss != v.opts.Issuer:
		return nil, errors.New("the token is of another issuer")
	case typ != "" && typ != "jwt" && typ != "at+jwt":
		return nil, errors.New("the token is no access token")
	}
	if err := v.locate(ctx); err != nil {
		return nil, &unavailableError{err}
	}
	if err := v.keys.verify(ctx, t); err != nil {
		return nil, err
	}
	if err := t.claims.valid(time.Now()); err != nil {
		return nil, err
	}
	info := &TokenInfo{
		Issuer: t.claims.Iss, Subject: t.claims.Sub, ClientID: t.claims.ClientID, Audience: t.claims.Aud,
		Scopes: strings.Fields(t.claims.Scope), Expires: t.claims.Exp.time().Add(clockSkew), Claims: t.payload,
	}
	if t.claims.Cnf != nil {
		info.KeyThumbprint = t.claims.Cnf.JKT
	}
	return info, nil
}

// locate finds out where the issuer's keys are.
func (v *jwtVerifier) locate(ctx context.Context) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch {
	case v.keys.url != "":
		return nil
	case v.failed != nil && time.Since(v.tried) < time.Minute:
		return v.failed
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), fetchTime) // others want to know, too
	defer cancel()
	meta, err := fetchServerMetadata(ctx, &v.keys.fetch, v.opts.Issuer)
	if err == nil && meta.JWKSURI == "" {
		err = errors.New("the issuer's metadata has no jwks_uri")
	}
	if err == nil {
		v.keys.url = meta.JWKSURI
	}
	v.failed, v.tried = err, time.Now()
	return err
}

// fetchServerMetadata finds the metadata of an issuer, by RFC 8414 and by
// OpenID Connect, in the specification's order. What names another issuer is
// not used (2026-07-28 basic/authorization § Authorization Server Metadata
// Discovery).
func fetchServerMetadata(ctx context.Context, f *fetcher, issuer string) (*AuthServerMetadata, error) {
	u, err := f.check(issuer)
	if err != nil {
		return nil, err
	}
	places := []string{wellKnown(u, "oauth-authorization-server").String(), wellKnown(u, "openid-configuration").String()}
	if path := strings.TrimSuffix(u.EscapedPath(), "/"); path != "" {
		places = append(places, u.Scheme+"://"+u.Host+path+"/.well-known/openid-configuration")
	}
	var tried []string
	for _, place := range places {
		var m AuthServerMetadata
		err := f.document(ctx, place, &m)
		switch {
		case err == nil && m.Issuer == "":
			err = errors.New("no issuer")
		case err == nil && m.Issuer != issuer && m.Issuer+"/" != issuer && m.Issuer != issuer+"/",
			err == nil && m.Issuer != issuer && strings.Trim(u.Path, "/") != "":
			return nil, fmt.Errorf("the metadata at %s is of the issuer %q", place, printable(m.Issuer, 200))
		case err == nil && m.TokenEndpoint == "" && m.JWKSURI == "":
			err = errors.New("no endpoints")
		}
		if err == nil {
			return &m, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		tried = append(tried, fmt.Sprintf("%s (%v)", place, err))
	}
	return nil, fmt.Errorf("no metadata of the authorization server: tried %s", strings.Join(tried, ", "))
}

// IntrospectionOptions say whom an IntrospectionVerifier asks.
type IntrospectionOptions struct {
	// URL is the introspection endpoint. ClientID and ClientSecret are the
	// resource server's own credentials there.
	URL, ClientID, ClientSecret string
	// Issuer is who the tokens are of, where the answer does not say.
	Issuer string
	// Client asks; nil means [http.DefaultClient].
	Client *http.Client
}

// IntrospectionVerifier returns a BearerOptions.Verify that asks the
// authorization server about every token (RFC 7662).
func IntrospectionVerifier(opts IntrospectionOptions) func(ctx context.Context, token string) (*TokenInfo, error) {
	return func(ctx context.Context, token string) (*TokenInfo, error) {
		u, err := checkURL(opts.URL)
		if err != nil {
			return nil, &unavailableError{err}
		}
		ctx, cancel := context.WithTimeout(ctx, fetchTime)
		defer cancel()
		form := url.Values{"token": {token}, "token_type_hint": {"access_token"}}
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), strings.NewReader(form.Encode()))
		if err != nil {
			return nil, &unavailableError{err}
		}
		r.Header.Set("Content-Type", formType)
		r.Header.Set("Accept", "application/json")
		r.SetBasicAuth(url.QueryEscape(opts.ClientID), url.QueryEscape(opts.ClientSecret))
		client := *http.DefaultClient
		if opts.Client != nil {
			client = *opts.Client
		}
		client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse } // the token is for nobody else
		response, err := client.Do(r)
		if err != nil {
			return nil, &unavailableError{failedRequest("POST", u, err)}
		}
		defer response.Body.Close()
		body, err := io.ReadAll(io.LimitReader(response.Body, maxOAuthReply))
		if err != nil || response.StatusCode != http.StatusOK {
			return nil, &unavailableError{fmt.Errorf("the introspection endpoint answered %d", response.StatusCode)}
		}
		return introspected(body, opts.Issuer)
	}
}

const formType = "application/x-www-form-urlencoded"

// introspected reads the answer of an introspection endpoint.
func introspected(body []byte, issuer string) (*TokenInfo, error) {
	var active struct {
		Active bool `json:"active"`
	}
	var c jwtClaims
	if err := decodeOAuth(body, &active); err != nil {
		return nil, &unavailableError{err}
	}
	if !active.Active {
		return nil, errors.New("the token is not active")
	}
	if err := decodeOAuth(body, &c); err != nil {
		return nil, &unavailableError{err}
	}
	if issuer != "" && c.Iss != "" && c.Iss != issuer {
		return nil, errors.New("the token is of another issuer")
	}
	info := &TokenInfo{Issuer: issuer, Subject: c.Sub, ClientID: c.ClientID, Audience: c.Aud, Scopes: strings.Fields(c.Scope), Claims: body}
	if c.Iss != "" {
		info.Issuer = c.Iss
	}
	if c.Exp != 0 {
		info.Expires = c.Exp.time()
	}
	if c.Cnf != nil {
		info.KeyThumbprint = c.Cnf.JKT
	}
	return info, nil
}
