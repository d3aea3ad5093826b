package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"mcpkit/mcp"
)

// A skill is an entry of skills/list, of the skills extension.
type skill struct {
	URI         string         `json:"uri"`
	Frontmatter map[string]any `json:"frontmatter"`
	Resources   []skillFile    `json:"resources"`
}

type skillFile struct {
	URI    string `json:"uri"`
	Digest string `json:"digest"`
	Size   int    `json:"size"`
}

func skills(ctx context.Context, cs *mcp.ClientSession) ([]skill, error) {
	var r struct {
		Skills []skill `json:"skills"`
	}
	err := cs.Call(ctx, "skills/list", nil, &r)
	return r.Skills, err
}

// listSkills reads no file before it is wanted.
func listSkills(ctx context.Context, cs *mcp.ClientSession) error {
	_, err := skills(ctx, cs)
	return err
}

// readSkill reads what the skills begin with, and checks that it is what was
// promised before it reads more.
func readSkill(ctx context.Context, cs *mcp.ClientSession) error {
	listed, err := skills(ctx, cs)
	if err != nil {
		return err
	}
	for _, s := range listed {
		for i, file := range s.Resources {
			r, err := cs.ReadResource(ctx, file.URI)
			if err != nil {
				return err
			}
			if len(r.Contents) != 1 {
				return fmt.Errorf("%s has %d contents", file.URI, len(r.Contents))
			}
			body := []byte(r.Contents[0].Text)
			if r.Contents[0].Blob != nil {
				body = r.Contents[0].Blob
			}
			if err := file.check(body); err != nil {
				return err
			}
			if file.URI == s.URI || i == 0 && strings.HasSuffix(file.URI, "/SKILL.md") {
				if err := s.check(body); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (f *skillFile) check(body []byte) error {
	sum := sha256.Sum256(body)
	switch {
	case len(body) != f.Size:
		return fmt.Errorf("%s has %d bytes, not %d", f.URI, len(body), f.Size)
	case "sha256:"+hex.EncodeToString(sum[:]) != f.Digest:
		return fmt.Errorf("%s is not what its digest says", f.URI)
	}
	return nil
}

// check compares the frontmatter of a skill, one "name: text" a line, with
// what was listed.
func (s *skill) check(body []byte) error {
	_, rest, _ := bytes.Cut(body, []byte("---\n"))
	head, _, ok := bytes.Cut(rest, []byte("\n---"))
	if !ok {
		return fmt.Errorf("%s has no frontmatter", s.URI)
	}
	found := map[string]string{}
	for line := range strings.Lines(string(head)) {
		if name, text, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			found[name] = strings.Trim(strings.TrimSpace(text), `"'`)
		}
	}
	for name, want := range s.Frontmatter {
		if text, ok := want.(string); ok && found[name] != text {
			return fmt.Errorf("%s: the frontmatter's %s is not as it was listed", s.URI, name)
		}
	}
	return nil
}
