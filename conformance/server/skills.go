package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	"mcpkit/mcp"
)

// The extension for skills (SEP-2640): folders of files that a model may read
// when it needs them. The package knows nothing of it; its methods are
// registered with Handle.
const skillsExtension = "io.modelcontextprotocol/skills"

// skillFiles are the files of the one skill, by URI.
var skillFiles = []struct{ uri, mimeType, text string }{
	{"skill://pdf-processing/SKILL.md", "text/markdown", "---\nname: pdf-processing\ndescription: Reads and fills PDF files\n---\n\n# PDF files\n\nSee references/FORMS.md for forms.\n"},
	{"skill://pdf-processing/references/FORMS.md", "text/markdown", "# Forms\n\nFill one field after the other.\n"},
}

type skillFile struct {
	URI    string `json:"uri"`
	Digest string `json:"digest"`
	Size   int    `json:"size"`
}

type skill struct {
	URI         string            `json:"uri"`
	Frontmatter map[string]string `json:"frontmatter"`
	Resources   []skillFile       `json:"resources"`
}

var pdf = skill{
	URI:         skillFiles[0].uri,
	Frontmatter: map[string]string{"name": "pdf-processing", "description": "Reads and fills PDF files"},
}

// cached are the members that say for how long a result is good.
type cached struct {
	TTLMs      int    `json:"ttlMs"`
	CacheScope string `json:"cacheScope"`
}

func addSkills(s *mcp.Server) {
	pdf.Resources = nil
	for _, f := range skillFiles {
		sum := sha256.Sum256([]byte(f.text))
		pdf.Resources = append(pdf.Resources, skillFile{f.uri, "sha256:" + hex.EncodeToString(sum[:]), len(f.text)})
		name := f.uri[strings.LastIndexByte(f.uri, '/')+1:]
		r := mcp.Resource{URI: f.uri, Name: name, MIMEType: f.mimeType}
		if f.uri == pdf.URI {
			r.Name, r.Description = pdf.Frontmatter["name"], pdf.Frontmatter["description"]
		}
		s.AddResource(r, func(_ context.Context, req *mcp.Request) (*mcp.ReadResourceResult, error) {
			return &mcp.ReadResourceResult{Contents: []mcp.ResourceContents{{URI: f.uri, MIMEType: f.mimeType, Text: f.text}}}, nil
		})
	}
	s.Handle("skills/list", func(context.Context, *mcp.Request) (any, error) {
		return struct {
			cached
			Skills []skill `json:"skills"`
		}{cached{0, "private"}, []skill{pdf}}, nil
	})
	s.Handle("skills/get", func(_ context.Context, req *mcp.Request) (any, error) {
		if uri(req) != pdf.URI {
			return nil, mcp.Errorf(mcp.CodeInvalidParams, "no such skill: %s", uri(req))
		}
		return struct {
			cached
			Skill skill `json:"skill"`
		}{cached{0, "private"}, pdf}, nil
	})
	s.Handle("resources/directory/read", func(_ context.Context, req *mcp.Request) (any, error) {
		children := childrenOf(strings.TrimSuffix(uri(req), "/") + "/")
		if children == nil {
			return nil, mcp.Errorf(mcp.CodeInvalidParams, "not a directory: %s", uri(req))
		}
		return struct {
			cached
			Resources []mcp.Resource `json:"resources"`
		}{cached{0, "private"}, children}, nil
	})
}

func uri(req *mcp.Request) string {
	var p struct {
		URI string `json:"uri"`
	}
	json.Unmarshal(req.Params, &p) // what does not fit names nothing
	return p.URI
}

// childrenOf returns what is directly in a directory, nil if it is none.
func childrenOf(dir string) (children []mcp.Resource) {
	for _, f := range skillFiles {
		rest, ok := strings.CutPrefix(f.uri, dir)
		if !ok {
			continue
		}
		child := mcp.Resource{URI: f.uri, Name: rest, MIMEType: f.mimeType}
		if name, _, deeper := strings.Cut(rest, "/"); deeper {
			child = mcp.Resource{URI: dir + name, Name: name, MIMEType: "inode/directory"}
		}
		if !slices.ContainsFunc(children, func(r mcp.Resource) bool { return r.URI == child.URI }) {
			children = append(children, child)
		}
	}
	return children
}
