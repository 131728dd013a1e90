"""The files source: a workspace watched for handoffs and returns that agents write as files."""
