-- Watermark: 4 s behind the highest event time seen; the data is at most 3 s out of order, so no row is late.
CREATE SOURCE bid (auction BIGINT, bidder BIGINT, price BIGINT, channel VARCHAR, url VARCHAR, date_time TIMESTAMP, extra VARCHAR,
  WATERMARK FOR date_time AS date_time - INTERVAL '4 seconds') WITH (connector = 'file', path = 'nexmark/data/bid.jsonl', format = 'json');
