// In the place of `semver`, 20 KB that the client library uses once: to ask whether the editor is new enough, which `engines` has said already.
export = (version: unknown): unknown => version ?? true;
