"""Words that several results share: certificates, headers, what stands beside weights."""
